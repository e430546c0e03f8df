import { ConnectionError, isObject, notStonetown } from './errors.js'
import { Pauses } from './pauses.js'
import { kindOf } from './repeatable.js'
import { deadline, sleep } from './signals.js'
import { Refusal, type TokenSource } from './tokens.js'

/** What a {@link Transport} needs. Times are in milliseconds. */
export interface TransportConfig {
  /** The URL of the tenant, without a final slash. */
  baseUrl: string
  tokens: TokenSource
  fetch: typeof fetch
  patience: number
  attemptTimeout: number
  onWarning: ((text: string) => void) | undefined
}

/**
 * Sends requests with an access token, and again if the server is too busy or the network lost them,
 * where that is safe ({@link kindOf}). A request without a token of its own that is refused with 401 is
 * sent once more with a new token.
 */
export class Transport {
  readonly #config: TransportConfig
  readonly #warned = new Set<string>()

  constructor(config: TransportConfig) {
    this.#config = config
  }

  /** Is fetch for openapi-fetch. The response has arrived as a whole, unless it is a stream of lines. */
  readonly fetch = async (request: Request): Promise<Response> => {
    const { baseUrl, patience, tokens } = this.#config
    const kind = kindOf(request.method, request.url.slice(baseUrl.length).split('?')[0] ?? '')
    const headers = new Headers(request.headers)
    // All attempts have the same key, so that the request is executed once.
    if (kind === 'write' && !headers.has('Idempotency-Key')) headers.set('Idempotency-Key', randomKey())
    const body = await request.arrayBuffer()
    const own = headers.has('Authorization')
    const pauses = new Pauses(patience)
    for (let renewed = own; ; ) {
      let pause: number | undefined
      try {
        let token = ''
        if (!own) {
          token = await tokens.get(request.signal)
          headers.set('Authorization', `Bearer ${token}`)
        }
        const response = await this.#attempt(request, headers, body)
        if (response.ok) {
          this.#warn(response.headers.get('Warning'))
          return response
        }
        if (response.status === 401 && !renewed) {
          renewed = true // revoked, or signed with a removed key
          tokens.forget(token)
          continue
        }
        pause = pauses.afterResponse(response.status, await codeOf(response), response.headers.get('Retry-After'))
        if (pause === undefined) return response
      } catch (error) {
        request.signal.throwIfAborted()
        if (error instanceof Refusal) {
          pause = pauses.afterResponse(error.response.status, '', error.response.headers.get('Retry-After'))
          if (pause === undefined) throw error.error()
        } else {
          if (error instanceof Lost && error.isTemporary && (kind !== 'other' || error.unsent)) pause = pauses.afterLoss()
          if (pause === undefined) throw error instanceof Lost ? error.error() : error
        }
      }
      await sleep(pause, request.signal)
    }
  }

  /** Sends a request for a token. */
  readonly token = async (headers: HeadersInit, form: URLSearchParams): Promise<Response> =>
    this.#attempt(new Request(`${this.#config.baseUrl}/oauth2/token`, { method: 'POST' }), new Headers(headers), form, true)

  async #attempt(request: Request, headers: Headers, body: ArrayBuffer | URLSearchParams, unsent = false): Promise<Response> {
    const limit = deadline(this.#config.attemptTimeout, request.signal)
    try {
      const response = await this.#config.fetch.call(undefined, request.url, {
        method: request.method,
        headers,
        ...(body instanceof ArrayBuffer && body.byteLength === 0 ? {} : { body }),
        signal: limit.signal,
        redirect: 'manual', // the API does not redirect, and a redirect would send tokens elsewhere
        credentials: 'omit',
        cache: 'no-store',
      })
      if (response.type === 'opaqueredirect') throw notStonetown()
      if (response.headers.get('Content-Type')?.startsWith('application/x-ndjson')) return response
      const whole = await response.arrayBuffer()
      const { status, statusText } = response
      return new Response(whole.byteLength === 0 ? null : whole, { status, statusText, headers: response.headers })
    } catch (error) {
      throw error instanceof ConnectionError ? error : new Lost(error, unsent)
    } finally {
      limit.clear()
    }
  }

  /** Passes on the text of a Warning with the code 299 (RFC 7234 §5.5), each once. */
  #warn(header: string | null): void {
    const { onWarning } = this.#config
    if (header === null || onWarning === undefined) return
    for (const [, quoted = ''] of header.matchAll(/299 - "((?:[^"\\]|\\.)*)"/g)) {
      const text = quoted.replace(/\\(.)/g, '$1')
      if (this.#warned.has(text)) continue
      this.#warned.add(text)
      onWarning(text)
    }
  }
}

/** The network lost a request or its response. `unsent`: the request itself was not sent. */
class Lost extends Error {
  constructor(
    override readonly cause: unknown,
    readonly unsent: boolean,
  ) {
    super()
  }

  /** Whether another attempt may succeed. Names and certificates are seldom mended within seconds. */
  get isTemporary(): boolean {
    const reason = isObject(this.cause) && isObject(this.cause.cause) ? String(this.cause.cause.code) : ''
    return reason !== 'ENOTFOUND' && !/CERT|ERR_TLS/.test(reason)
  }

  /** The error for the caller. */
  error(): unknown {
    if (this.cause instanceof DOMException) return this.cause // the time limit of the attempt
    return new ConnectionError('the server cannot be reached, or the connection was lost', { cause: this.cause })
  }
}

/** Returns the code of an error response, which stays readable. */
async function codeOf(response: Response): Promise<string> {
  const body: unknown = await response.clone().json().catch(() => undefined)
  return isObject(body) && typeof body.error === 'string' ? body.error : ''
}

/** Returns a key. crypto.randomUUID exists in secure contexts only. */
function randomKey(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, '0')).join('')
}
