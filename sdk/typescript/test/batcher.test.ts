import { expect, test, vi } from 'vitest'

import { Batcher, Consistency, maxBatch, StonetownError, type Batch, type BatchAnswer } from '../src/index.js'
import { ann, bob, FakeServer, ok, q3, refusal } from './server.js'

/** Answers batches after a second: those about ann are allowed, those about absent resources have no answer. */
class Answering {
  readonly batches: Batch[] = []

  async checkBatch(batch: Batch): Promise<BatchAnswer> {
    this.batches.push(batch)
    await new Promise((resolve) => setTimeout(resolve, 1000))
    const decisions = batch.checks.map(({ subject, resource }) =>
      resource.external_id === 'absent' ? { allowed: false, error: 'resource_not_found' as const } : { allowed: subject?.id === 'ann' },
    )
    return { decisions, consistencyToken: `${this.batches.length}` }
  }
}

test('checks of one moment are one request, and those that arrive meanwhile are the next', async () => {
  vi.useFakeTimers()
  try {
    const server = new Answering()
    const batcher = new Batcher(server)
    const ask = async (id: string, want: boolean) => expect(await batcher.allowed({ type: 'user', id }, 'view', q3)).toBe(want)
    const all = [ask('ann', true), ask('bob', false)]
    await vi.advanceTimersByTimeAsync(500)
    for (let n = 0; n < maxBatch + 10; n++) all.push(ask(n % 2 ? 'bob' : 'ann', n % 2 === 0))
    await vi.advanceTimersByTimeAsync(10_000)
    await Promise.all(all)
    expect(server.batches.map(({ checks }) => checks.length)).toEqual([2, maxBatch, 10])
    const absent = batcher.allowed(ann, 'view', { type: 'document', external_id: 'absent' })
    absent.catch(() => {})
    await vi.advanceTimersByTimeAsync(1000)
    await expect(absent).rejects.toMatchObject({ code: 'resource_not_found' })
  } finally {
    vi.useRealTimers()
  }
})

test('a caller that leaves does not take the batch of others with it', async () => {
  vi.useFakeTimers()
  try {
    const batcher = new Batcher(new Answering())
    const leaving = batcher.allowed(ann, 'view', q3, { timeout: 10 })
    leaving.catch(() => {})
    const staying = batcher.allowed(ann, 'view', q3)
    await vi.advanceTimersByTimeAsync(20)
    await expect(leaving).rejects.toMatchObject({ name: 'TimeoutError' })
    await vi.advanceTimersByTimeAsync(1000)
    expect(await staying).toBe(true)
  } finally {
    vi.useRealTimers()
  }
})

test('different consistency tokens are different batches', async () => {
  const server = new FakeServer(({ body }) => ok(body.checks.map(() => ({ allowed: true })), { consistency_token: 'seen' }))
  const batcher = new Batcher(server.client())
  const [one, two] = [new Consistency('one'), new Consistency('two')]
  await Promise.all([one, one, two, undefined].map((consistency) => batcher.allowed(ann, 'view', q3, consistency && { consistency })))
  expect(server.got.map(({ body }) => [body.consistency_token, body.checks.length])).toEqual([['one', 2], ['two', 1], [undefined, 1]])
  expect(two.token).toBe('seen')
})

test('a check that the server refuses does not fail those of others', async () => {
  const server = new FakeServer(({ body }) =>
    body.checks.some(({ subject }: { subject: { id: string } }) => subject.id === '')
      ? refusal(400, 'validation_failed')
      : ok(body.checks.map(({ subject }: { subject: { id: string } }) => ({ allowed: subject.id === 'ann' }))),
  )
  const batcher = new Batcher(server.client())
  const answers = await Promise.allSettled(Array.from({ length: 9 }, (_, n) => batcher.allowed([ann, bob, ann][n % 3] ?? ann, 'view', q3)).concat(batcher.allowed({ type: 'user', id: '' }, 'view', q3)))
  expect(answers.slice(0, 9).map((answer) => answer.status === 'fulfilled' && answer.value)).toEqual([true, false, true, true, false, true, true, false, true])
  expect(answers[9]).toMatchObject({ status: 'rejected', reason: { code: 'validation_failed' } })
  expect(server.got.length).toBeLessThanOrEqual(9)
})

test('all checks of a batch without an answer fail', async () => {
  const server = new FakeServer(() => refusal(403, 'insufficient_scope'))
  const batcher = new Batcher(server.client())
  const answers = await Promise.allSettled([batcher.allowed(ann, 'view', q3), batcher.allowed(bob, 'view', q3)])
  for (const answer of answers) expect(answer).toMatchObject({ status: 'rejected', reason: expect.any(StonetownError) })
  expect(server.got).toHaveLength(1)
})
