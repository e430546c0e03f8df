import { afterEach, beforeEach, expect, test, vi } from 'vitest'

import { Client } from '../src/index.js'
import { ann, FakeServer, ok, q3 } from './server.js'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

test('calls at the same time share one request for a token, which is renewed before it expires', async () => {
  const server = new FakeServer(() => ok({ allowed: true }))
  const client = server.client()
  await Promise.all(Array.from({ length: 20 }, () => client.allowed(ann, 'view', q3)))
  expect([server.got.length, server.tokens]).toEqual([20, 1])
  await vi.advanceTimersByTimeAsync(3539_000)
  await client.allowed(ann, 'view', q3)
  expect(server.tokens).toBe(1)
  await vi.advanceTimersByTimeAsync(2_000)
  await client.allowed(ann, 'view', q3)
  expect(server.tokens).toBe(2)
})

test('a caller that leaves does not end the request for the others', async () => {
  let answer!: (response: Response) => void
  const server = new FakeServer(() => ok({ allowed: true }))
  const slow: typeof fetch = (input, init) =>
    String(input).endsWith('/oauth2/token') ? new Promise((resolve) => (answer = resolve)) : server.fetch(input, init)
  const client = server.client({ fetch: slow })
  const controller = new AbortController()
  const first = client.allowed(ann, 'view', q3, { signal: controller.signal })
  first.catch(() => {})
  const second = client.allowed(ann, 'view', q3)
  await vi.advanceTimersByTimeAsync(1)
  controller.abort(new Error('left'))
  await expect(first).rejects.toThrow('left')
  answer(Response.json({ access_token: 't', expires_in: 60 }))
  expect(await second).toBe(true)
})

test('a call that ended before it began leaves no unhandled error', async () => {
  const client = new FakeServer(() => ok({})).client({ fetch: async () => Response.json({ error: 'invalid_client' }, { status: 401 }) })
  await expect(client.allowed(ann, 'view', q3, { signal: AbortSignal.abort(new Error('left')) })).rejects.toThrow('left')
  await vi.advanceTimersByTimeAsync(10) // vitest fails if the refusal of credentials is unhandled
})

test('the refusal of credentials is an error, and being busy is not', async () => {
  const answers = [
    Response.json({ error: 'temporarily_unavailable', message: 'busy' }, { status: 503 }),
    Response.json({ error: 'invalid_client', message: 'wrong secret', details: {}, request_id: 'req_x' }, { status: 401 }),
  ]
  const sent: [unknown, unknown][] = []
  const client = new Client({
    baseUrl: 'http://dev.test',
    clientId: 'a:b',
    clientSecret: 'é c',
    scopes: ['resources:read', 'resources:write'],
    fetch: async (_, init) => {
      sent.push([new Headers(init?.headers).get('Authorization'), String(init?.body)])
      return answers.shift() as Response
    },
  })
  const call = client.allowed(ann, 'view', q3)
  call.catch(() => {})
  await vi.advanceTimersByTimeAsync(1000)
  await expect(call).rejects.toMatchObject({ status: 401, code: 'invalid_client', message: 'wrong secret' })
  expect(sent).toHaveLength(2)
  // The parts are encoded as a form before they are joined (RFC 6749 §2.3.1).
  expect(sent[0]).toEqual([`Basic ${btoa('a%3Ab:%C3%A9+c')}`, 'grant_type=client_credentials&scope=resources%3Aread+resources%3Awrite'])
})

test('tokens can come from the application', async () => {
  const refused: (string | undefined)[] = []
  const server = new FakeServer(({ headers }) => (headers.get('Authorization') === 'Bearer new' ? ok({ allowed: true }) : new Response('{}', { status: 401 })))
  const client = new Client({
    baseUrl: 'http://dev.test',
    accessToken: (token) => (refused.push(token), token === undefined ? 'old' : 'new'),
    fetch: server.fetch,
  })
  expect(await client.allowed(ann, 'view', q3)).toBe(true)
  expect(refused).toEqual([undefined, 'old'])
})

test('a client needs an address and credentials', () => {
  const wrong = [
    { baseUrl: 'dev.test' },
    { baseUrl: 'ftp://dev.test' },
    { baseUrl: 'http://u:secret@dev.test' },
    { baseUrl: 'http://dev.test?x' },
    { baseUrl: 'http://dev.test', clientId: 'c' },
    { baseUrl: 'http://dev.test', clientId: 'c', clientSecret: 's', accessToken: () => '' },
  ]
  for (const config of wrong) {
    const create = () => new Client({ ...(config.baseUrl !== 'http://dev.test' && { clientId: 'c', clientSecret: 's' }), ...config })
    expect(create).toThrow(TypeError)
    expect(create).not.toThrow(/secret@/)
  }
})
