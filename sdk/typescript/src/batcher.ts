import type { CallOptions } from './call.js'
import type { BatchChecker, Checker } from './client.js'
import type { Begun, Consistency } from './consistency.js'
import { StonetownError } from './errors.js'
import { abortable, deadline } from './signals.js'
import type { BatchAnswer, BatchCheck, BatchDecision, ResourceRef, Subject } from './types.js'

/** The number of checks of the largest batch. */
export const maxBatch = 1000

interface Waiting {
  check: BatchCheck
  consistency: Consistency | undefined
  begun: Begun | undefined
  resolve(allowed: boolean): void
  reject(error: unknown): void
}

/**
 * Answers checks that are asked at the same time with few requests. Checks of the same moment are one
 * batch; while it is in progress, the checks that arrive wait and are the next one. Those with different
 * consistency tokens are in different batches.
 */
export class Batcher implements Checker {
  readonly #asked: BatchChecker
  readonly #queues = new Map<string | undefined, Waiting[]>() // by consistency token

  constructor(asked: BatchChecker) {
    this.#asked = asked
  }

  /** Reports whether a subject may perform an action on a resource. */
  async allowed(subject: Subject, action: string, resource: ResourceRef, options: CallOptions = {}): Promise<boolean> {
    const { consistency, timeout, signal } = options
    const begun = consistency?.begin()
    const answer = new Promise<boolean>((resolve, reject) => {
      this.#add(begun?.token, { check: { subject, action, resource }, consistency, begun, resolve, reject })
    })
    answer.catch(() => {}) // the caller may leave before it fails
    const limit = deadline(timeout, signal)
    try {
      return await abortable(answer, limit.signal)
    } finally {
      limit.clear()
    }
  }

  #add(token: string | undefined, waiting: Waiting): void {
    const queue = this.#queues.get(token)
    if (queue) {
      queue.push(waiting)
      return
    }
    this.#queues.set(token, [waiting])
    void this.#send(token)
  }

  /** Sends batches until no check waits. They are for several callers, so they do not end with the signal of one. */
  async #send(token: string | undefined): Promise<void> {
    await Promise.resolve() // for the other checks of this moment
    for (;;) {
      const batch = this.#queues.get(token)?.splice(0, maxBatch) ?? []
      if (batch.length === 0) {
        this.#queues.delete(token)
        return
      }
      await this.#answer(batch, token)
    }
  }

  async #answer(batch: Waiting[], token: string | undefined): Promise<void> {
    let answer: BatchAnswer
    try {
      answer = await this.#asked.checkBatch({ checks: batch.map(({ check }) => check), ...(token !== undefined && { consistency_token: token }) })
    } catch (error) {
      // A check that is malformed, or that needs too much work, must not fail those of others.
      if (batch.length > 1 && error instanceof StonetownError && (error.status === 400 || error.status === 413)) {
        const half = batch.length >> 1
        await Promise.all([this.#answer(batch.slice(0, half), token), this.#answer(batch.slice(half), token)])
        return
      }
      for (const { reject } of batch) reject(error)
      return
    }
    batch.forEach(({ consistency, begun, resolve, reject }, i) => {
      if (begun) consistency?.end(begun, answer.consistencyToken, false)
      const decision: BatchDecision | undefined = answer.decisions[i]
      if (decision === undefined) reject(new Error('the batch has too few decisions'))
      else if (decision.error === undefined) resolve(decision.allowed)
      else reject(new StonetownError(200, decision.error, `the check has no answer: ${decision.error}`))
    })
  }
}
