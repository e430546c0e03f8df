import { afterEach, beforeEach, expect, test, vi } from 'vitest'

import { FakeServer, lost, refusal } from './server.js'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

const line = (n: number, event = 'change') => `${JSON.stringify({ event, consistency_token: `${n}`, at: '2026-11-22T09:30:00Z' })}\n`

/** Returns a response with parts of a stream, which then ends or stays silent. */
function stream(parts: string[], ends = true): Response {
  const text = new TextEncoder()
  const body = new ReadableStream({
    start(controller) {
      for (const part of parts) controller.enqueue(text.encode(part))
      if (ends) controller.close()
    },
  })
  return new Response(body, { headers: { 'Content-Type': 'application/x-ndjson' } })
}

/** Reads a number of events, while time passes. */
async function read(server: FakeServer, count: number, signal?: AbortSignal): Promise<string[]> {
  const tokens: string[] = []
  const reading = (async () => {
    for await (const event of server.client().watch({}, signal && { signal })) {
      tokens.push(event.consistency_token)
      if (tokens.length === count) break
    }
    return tokens
  })()
  reading.catch(() => {})
  for (let n = 0; n < 60; n++) await vi.advanceTimersByTimeAsync(1000)
  return reading
}

test('a connection that ends is replaced, and no event is missed', async () => {
  const server = new FakeServer((_, n) => (n === 1 ? stream([line(1, 'heartbeat'), line(2).slice(0, 9), line(2).slice(9) + line(3)]) : n === 2 ? lost() : stream([line(4)])))
  expect(await read(server, 4)).toEqual(['1', '2', '3', '4'])
  expect(server.got.map(({ path }) => path)).toEqual(['', '?after=3', '?after=3'].map((query) => `/api/v1/resources/watch${query}`))
})

test('a connection that is silent is replaced', async () => {
  const server = new FakeServer((_, n) => stream([line(n)], n > 1))
  expect(await read(server, 2)).toEqual(['1', '2'])
  expect(server.got[1]?.path).toContain('after=1')
})

test('a watch ends with the error of the server', async () => {
  const server = new FakeServer(() => refusal(410, 'history_expired'))
  await expect(read(server, 1)).rejects.toMatchObject({ code: 'history_expired' })
})

test('a watch that the server ends at once, again and again, ends', async () => {
  const server = new FakeServer(() => stream([]))
  await expect(read(server, 1)).rejects.toThrow('the watch was lost')
  expect(server.got).toHaveLength(4)
})

test('what is not an event is not from Stonetown', async () => {
  await expect(read(new FakeServer(() => stream(['{}\n'])), 1)).rejects.toThrow('not from Stonetown')
  await expect(read(new FakeServer(() => stream(['<html>\n'])), 1)).rejects.toThrow('not from Stonetown')
})

test('a signal ends a watch, and its connection', async () => {
  let connection: AbortSignal | null | undefined
  const server = new FakeServer(() => stream([line(1)], false))
  const client = server.client({
    fetch: (input, init) => {
      if (String(input).includes('watch')) connection = init?.signal
      return server.fetch(input, init)
    },
  })
  const controller = new AbortController()
  const reading = (async () => {
    for await (const _ of client.watch({}, { signal: controller.signal }));
  })()
  reading.catch(() => {})
  await vi.advanceTimersByTimeAsync(10)
  controller.abort(new Error('enough'))
  await vi.advanceTimersByTimeAsync(10)
  expect(connection?.aborted).toBe(true)
  await vi.advanceTimersByTimeAsync(60_000)
  await expect(reading).rejects.toThrow('enough')
})
