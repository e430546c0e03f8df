import { ConnectionError, notStonetown, StonetownError } from './errors.js'
import { Pauses } from './pauses.js'
import { abortable, sleep } from './signals.js'
import type { WatchEvent, WatchInput } from './types.js'

/** How long a watch may be silent: three heartbeats. The connection is then lost. */
const silence = 45_000

/** Opens a watch. */
export type Open = (query: WatchInput, signal: AbortSignal) => Promise<{ data?: unknown; error?: unknown; response: Response }>

/**
 * Iterates over the events of a watch. A connection that ends, because its token expires or because
 * the network fails, is replaced, and no event is missed.
 */
export async function* watch(
  open: Open,
  input: WatchInput,
  patience: number,
  signal?: AbortSignal,
): AsyncGenerator<WatchEvent, void, undefined> {
  let after = input.after
  for (let pauses: Pauses | undefined; ; ) {
    const stop = new AbortController()
    const ended = signal ? AbortSignal.any([signal, stop.signal]) : stop.signal
    let lost: unknown
    try {
      const opened = await open(after === undefined ? input : { ...input, after }, ended)
      if (!opened.response.ok) throw StonetownError.of(opened.response.status, opened.error)
      if (!(opened.data instanceof ReadableStream)) throw notStonetown()
      for await (const line of lines(opened.data, ended, () => stop.abort(new Error('the connection is silent')))) {
        const event = parse(line)
        after = event.consistency_token
        pauses = undefined
        yield event
      }
      lost = new ConnectionError('the server ended the watch')
    } catch (error) {
      signal?.throwIfAborted()
      if (error instanceof StonetownError || error instanceof ConnectionError) throw error // the transport has been patient
      lost = error
    } finally {
      stop.abort() // also when the caller leaves the loop
    }
    pauses ??= new Pauses(patience) // which begins with the loss
    const pause = pauses.afterLoss()
    if (pause === undefined) throw new ConnectionError('the watch was lost', { cause: lost })
    await sleep(pause, signal)
  }
}

/** Reads lines until a signal is aborted. `silent` is called when none arrived for long. */
async function* lines(stream: ReadableStream<Uint8Array>, signal: AbortSignal, silent: () => void): AsyncGenerator<string, void, undefined> {
  const reader = stream.getReader()
  const decoder = new TextDecoder()
  let rest = ''
  try {
    for (;;) {
      const alarm = setTimeout(silent, silence)
      const { done, value } = await abortable(reader.read(), signal).finally(() => clearTimeout(alarm))
      if (done) return
      const parts = (rest + decoder.decode(value, { stream: true })).split('\n')
      rest = parts.pop() ?? ''
      yield* parts
    }
  } finally {
    reader.cancel().catch(() => {}) // the connection may have failed
  }
}

function parse(line: string): WatchEvent {
  let event: Partial<WatchEvent> | null = null
  try {
    event = JSON.parse(line) as Partial<WatchEvent> | null
  } catch {
    // below
  }
  if (typeof event?.consistency_token !== 'string') throw notStonetown()
  return event as WatchEvent
}
