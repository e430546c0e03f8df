import { afterEach, beforeEach, expect, test, vi } from 'vitest'

import { ConnectionError, hasCode, StonetownError } from '../src/index.js'
import { ann, FakeServer, lost, ok, q3, refusal, viewer } from './server.js'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

/** Lets time pass until a call has ended. */
async function settled<T>(call: Promise<T>): Promise<T> {
  let done = false
  call.catch(() => {}).finally(() => (done = true))
  for (let n = 0; !done && n < 1000; n++) await vi.advanceTimersByTimeAsync(100)
  expect(done).toBe(true)
  return call
}

test('a write that the server was too busy for is repeated under one key', async () => {
  const started = Date.now()
  const server = new FakeServer((_, n) => (n < 3 ? refusal(n === 1 ? 429 : 503, 'rate_limited', { 'Retry-After': '2' }) : ok({}, {}, { status: 201 })))
  expect(await settled(server.client().createRelation(viewer))).toBe(true)
  const keys = server.got.map(({ headers }) => headers.get('Idempotency-Key'))
  expect(keys).toHaveLength(3)
  expect(keys[0]).toMatch(/^[0-9a-f]{32}$/)
  expect(new Set(keys).size).toBe(1)
  expect(Date.now() - started).toBeGreaterThanOrEqual(4000)
})

test('a date in Retry-After is honoured', async () => {
  const started = Date.now()
  const server = new FakeServer((_, n) => (n === 1 ? refusal(503, 'service_unavailable', { 'Retry-After': new Date(started + 4000).toUTCString() }) : ok({})))
  await settled(server.client().putResource(q3))
  expect(Date.now() - started).toBeGreaterThanOrEqual(2900) // the date has whole seconds
})

test('a call is not repeated beyond its patience', async () => {
  const server = new FakeServer(() => refusal(503, 'service_unavailable', { 'Retry-After': '16' }))
  const error = await settled(server.client().allowed(ann, 'view', q3)).catch((e: unknown) => e)
  expect(hasCode(error, 'service_unavailable')).toBe(true)
  expect(server.got).toHaveLength(1)
})

test('a write that is in progress elsewhere is awaited, other conflicts are final', async () => {
  const server = new FakeServer((_, n) => refusal(409, n === 1 ? 'idempotency_in_progress' : 'precondition_failed'))
  await expect(settled(server.client().writeRelations([{ op: 'create', ...viewer }]))).rejects.toMatchObject({
    status: 409,
    code: 'precondition_failed',
    requestId: 'req_x',
    message: 'about precondition_failed',
  })
  expect(server.got).toHaveLength(2)
})

test('lost requests are repeated three times', async () => {
  const server = new FakeServer(lost)
  await expect(settled(server.client().allowed(ann, 'view', q3))).rejects.toBeInstanceOf(ConnectionError)
  expect(server.got).toHaveLength(4)
  expect(server.got[0]?.headers.has('Idempotency-Key')).toBe(false) // a question
})

test('a request that could be executed twice is not repeated after a loss', async () => {
  const server = new FakeServer(lost)
  const signIn = server.client().api.POST('/api/v1/auth/sign-in', { body: { email: 'ann@example.com', password: 'x' } })
  await expect(settled(signIn)).rejects.toBeInstanceOf(ConnectionError)
  expect(server.got).toHaveLength(1)
})

test('unknown names and wrong certificates are not tried again', async () => {
  for (const code of ['ENOTFOUND', 'ERR_TLS_CERT_ALTNAME_INVALID', 'SELF_SIGNED_CERT_IN_CHAIN']) {
    const server = new FakeServer(() => new TypeError('fetch failed', { cause: Object.assign(new Error(), { code }) }))
    await expect(settled(server.client().allowed(ann, 'view', q3))).rejects.toBeInstanceOf(ConnectionError)
    expect(server.got).toHaveLength(1)
  }
})

test('a token that is refused is replaced once', async () => {
  const server = new FakeServer(({ headers }) => (headers.get('Authorization') === 'Bearer token 2' ? ok({ allowed: true }) : refusal(401, 'invalid_token')))
  expect(await settled(server.client().allowed(ann, 'view', q3))).toBe(true)
  const refusing = new FakeServer(() => refusal(401, 'invalid_token'))
  await expect(settled(refusing.client().allowed(ann, 'view', q3))).rejects.toMatchObject({ code: 'invalid_token' })
  expect(refusing.got).toHaveLength(2)
})

test('a token of the request itself is kept', async () => {
  const server = new FakeServer(() => refusal(401, 'invalid_token'))
  const { error } = await server.client().api.GET('/api/v1/me/profile', { headers: { Authorization: 'Bearer own' } })
  expect(error).toMatchObject({ error: 'invalid_token' })
  expect(server.got.map(({ headers }) => headers.get('Authorization'))).toEqual(['Bearer own'])
  expect(server.tokens).toBe(0)
})

test('an attempt ends after its time, a call after its own', async () => {
  const server = new FakeServer((_, n) => (n === 1 ? new Promise<Response>(() => {}) : ok({ allowed: true })))
  const client = server.client({ attemptTimeout: 1000 })
  expect(await settled(client.allowed(ann, 'view', q3))).toBe(true)
  const silent = new FakeServer(() => new Promise<Response>(() => {}))
  await expect(settled(silent.client().allowed(ann, 'view', q3, { timeout: 300 }))).rejects.toMatchObject({ name: 'TimeoutError' })
  expect(silent.got).toHaveLength(1)
})

test('a signal ends a call during an attempt and during a pause', async () => {
  for (const answer of [new Promise<Response>(() => {}), refusal(503, 'service_unavailable', { 'Retry-After': '5' })]) {
    const server = new FakeServer(() => answer)
    const controller = new AbortController()
    const call = server.client().allowed(ann, 'view', q3, { signal: controller.signal })
    call.catch(() => {})
    await vi.advanceTimersByTimeAsync(1)
    controller.abort(new Error('enough'))
    await expect(call).rejects.toThrow('enough')
    expect(server.got).toHaveLength(1)
  }
})

test('other programs at the address are noticed', async () => {
  const answers: Response[] = [new Response('<html>'), Response.json({ hello: 1 }), Response.json([])]
  for (const answer of answers) {
    await expect(settled(new FakeServer(() => answer).client().allowed(ann, 'view', q3))).rejects.toThrow('not from Stonetown')
  }
  const proxy = new FakeServer(() => new Response('<html>', { status: 502 }))
  await expect(settled(proxy.client().allowed(ann, 'view', q3))).rejects.toMatchObject({ status: 502, code: '', message: 'the server responded with 502' })
  const elsewhere = new FakeServer(() => new Response(null, { status: 302, headers: { Location: 'http://elsewhere.test' } }))
  await expect(settled(elsewhere.client().allowed(ann, 'view', q3))).rejects.toBeInstanceOf(StonetownError)
})

test('warnings are passed on once', async () => {
  const texts: string[] = []
  const Warning = '299 - "document#viewer is deprecated: \\"readers\\"", 299 - "another"'
  const server = new FakeServer(() => ok({ allowed: true }, {}, { headers: { Warning } }))
  const client = server.client({ onWarning: (text) => texts.push(text) })
  await client.allowed(ann, 'view', q3)
  await client.allowed(ann, 'view', q3)
  expect(texts).toEqual(['document#viewer is deprecated: "readers"', 'another'])
})
