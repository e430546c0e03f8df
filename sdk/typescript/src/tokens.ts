import { isObject, notStonetown, StonetownError } from './errors.js'
import { abortable } from './signals.js'

/** Has access tokens. */
export interface TokenSource {
  /** Returns a token. */
  get(signal: AbortSignal): Promise<string>
  /** Drops a token that the server refused. */
  forget(token: string): void
}

/** How long before its expiry a token is renewed, but at most half of its lifetime. */
const margin = 60_000

/**
 * Gets access tokens by client credentials, and another one before a token expires. All calls share one
 * request for it.
 */
export class ClientCredentials implements TokenSource {
  readonly #send: () => Promise<Response>
  #token = ''
  #renewAt = 0
  #request: Promise<string> | undefined

  /** @param send - requests a token */
  constructor(send: () => Promise<Response>) {
    this.#send = send
  }

  get(signal: AbortSignal): Promise<string> {
    if (this.#token !== '' && Date.now() < this.#renewAt) return Promise.resolve(this.#token)
    // The request is for other calls, too, so it does not end with the signal of one.
    this.#request ??= this.#renew().finally(() => (this.#request = undefined))
    return abortable(this.#request, signal)
  }

  forget(token: string): void {
    if (this.#token === token) this.#token = ''
  }

  async #renew(): Promise<string> {
    const requested = Date.now()
    const response = await this.#send()
    const body: unknown = await response.json().catch(() => undefined)
    if (!response.ok) throw new Refusal(response, body)
    if (!isObject(body) || typeof body.access_token !== 'string' || body.access_token === '') throw notStonetown()
    const lifetime = typeof body.expires_in === 'number' ? body.expires_in * 1000 : 0
    this.#renewAt = requested + lifetime - Math.min(margin, lifetime / 2)
    return (this.#token = body.access_token)
  }
}

/** The refusal of a token, with the response, which says when to try again. */
export class Refusal extends Error {
  constructor(
    readonly response: Response,
    readonly body: unknown,
  ) {
    super()
  }

  /** The error for the caller. */
  error(): StonetownError {
    return StonetownError.of(this.response.status, this.body)
  }
}

/** Takes access tokens from a function of the application. */
export class GivenTokens implements TokenSource {
  readonly #source: (refused?: string) => string | Promise<string>
  #refused: string | undefined

  constructor(source: (refused?: string) => string | Promise<string>) {
    this.#source = source
  }

  async get(signal: AbortSignal): Promise<string> {
    return abortable(Promise.resolve(this.#source(this.#refused)), signal)
  }

  forget(token: string): void {
    this.#refused = token
  }
}

/** Returns the Authorization header of a client (RFC 6749 §2.3.1). */
export function basic(id: string, secret: string): string {
  const encode = (text: string) => new URLSearchParams([['', text]]).toString().slice(1)
  return `Basic ${btoa(`${encode(id)}:${encode(secret)}`)}`
}
