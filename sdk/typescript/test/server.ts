import { Client, type Config } from '../src/index.js'

/** A request that a {@link FakeServer} got. */
export interface Got {
  method: string
  path: string
  headers: Headers
  body: any
}

/** How a {@link FakeServer} answers. An error is a lost connection. */
export type Handler = (request: Got, n: number) => Response | Error | Promise<Response | Error>

/** Is a server in place of fetch. */
export class FakeServer {
  readonly got: Got[] = [] // without those for tokens
  tokens = 0 // issued

  constructor(readonly handle: Handler) {}

  readonly fetch = async (input: RequestInfo | URL, init: RequestInit = {}): Promise<Response> => {
    init.signal?.throwIfAborted()
    const path = String(input).replace('http://dev.test', '')
    if (path === '/oauth2/token') {
      this.tokens++
      return Response.json({ access_token: `token ${this.tokens}`, expires_in: 3600 })
    }
    const text = init.body instanceof ArrayBuffer ? new TextDecoder().decode(init.body) : ''
    const request = { method: init.method ?? '', path, headers: new Headers(init.headers), body: text && JSON.parse(text) }
    this.got.push(request)
    const answer = await Promise.race([
      this.handle(request, this.got.length),
      new Promise<never>((_, reject) => init.signal?.addEventListener('abort', () => reject(init.signal?.reason))),
    ])
    if (answer instanceof Error) throw answer
    return answer
  }

  client(config: Partial<Config> = {}): Client {
    return new Client({ baseUrl: 'http://dev.test/', clientId: 'client_x', clientSecret: 'cs_x', fetch: this.fetch, ...config })
  }
}

/** Returns a successful response. */
export function ok(data: unknown, meta: object = {}, init?: ResponseInit): Response {
  return Response.json({ data, meta: { request_id: 'req_x', ...meta } }, init)
}

/** Returns an error of the API. */
export function refusal(status: number, error: string, headers?: HeadersInit): Response {
  return Response.json({ error, message: `about ${error}`, details: {}, request_id: 'req_x' }, { status, ...(headers && { headers }) })
}

export const ann = { type: 'user', id: 'ann' }
export const bob = { type: 'user', id: 'bob' }
export const q3 = { type: 'document', external_id: 'q3' }
export const viewer = { resource: q3, relation: 'viewer', subject: ann }

/** The network lost a connection. */
export const lost = () => new TypeError('fetch failed', { cause: Object.assign(new Error('reset'), { code: 'ECONNRESET' }) })
