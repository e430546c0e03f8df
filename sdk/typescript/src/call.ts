import { Consistency, type Begun } from './consistency.js'
import { notStonetown, StonetownError } from './errors.js'
import { deadline } from './signals.js'

/** What each call takes. */
export interface CallOptions {
  /** Ends the call. */
  signal?: AbortSignal
  /** How long the call may take with all its attempts, in milliseconds; of a list, the call for each page. */
  timeout?: number
  /** Carries consistency tokens from call to call. */
  consistency?: Consistency
}

/** A response as openapi-fetch returns it. */
interface Fetched<D> {
  data?: D
  error?: unknown
  response: Response
}

/** What the `meta` of responses may have. */
interface Meta {
  consistency_token?: string
  next_cursor?: string | null
}

/** A successful response. */
export interface Answer<T> {
  data: T
  meta: Meta
  status: number
}

/** The members of a request that say from which state it is answered. */
interface From {
  consistency_token?: string
  consistency?: string
  at?: string
}

/** Sends a request and returns its answer, with its consistency token noted. */
export async function call<D>(
  options: CallOptions,
  send: (signal: AbortSignal) => Promise<Fetched<D>>,
  { wrote = false, begun = options.consistency?.begin() }: { wrote?: boolean; begun?: Begun | null | undefined } = {},
): Promise<Answer<DataOf<D>>> {
  const limit = deadline(options.timeout, options.signal)
  try {
    const { data: body, error, response } = await send(limit.signal)
    if (!response.ok) throw StonetownError.of(response.status, error)
    if (response.status === 204) {
      const token = response.headers.get('X-Consistency-Token') ?? undefined
      if (begun) options.consistency?.end(begun, token, wrote)
      return { data: undefined as DataOf<D>, meta: {}, status: 204 }
    }
    const { data, meta } = (body ?? {}) as { data?: DataOf<D>; meta?: Meta }
    if (data === undefined || meta === undefined) throw notStonetown()
    if (begun) options.consistency?.end(begun, meta.consistency_token, wrote)
    return { data, meta, status: response.status }
  } catch (error) {
    throw error instanceof SyntaxError ? notStonetown() : error // it is not JSON
  } finally {
    limit.clear()
  }
}

/** What a response has in `data`. */
type DataOf<D> = D extends { data: infer T } ? T : undefined

/**
 * Sends a check with the token of its {@link Consistency}. A check that names the state itself is
 * answered from that, and leaves the Consistency as it is.
 */
export function under<B extends From>(options: CallOptions, body: B): { body: B; begun: Begun | null } {
  if (!options.consistency || body.consistency_token || body.consistency || body.at) return { body, begun: null }
  const begun = options.consistency.begin()
  return { body: begun.token === undefined ? body : { ...body, consistency_token: begun.token }, begun }
}
