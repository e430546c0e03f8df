/** How often a request is sent again that the network lost. */
const maxLost = 3
const firstPause = 100
const longestPause = 5_000

/** Decides whether and when a request is sent again. Times are in milliseconds. */
export class Pauses {
  readonly #until: number
  #times = 0
  #lost = 0

  /** @param patience - how long after now requests are repeated */
  constructor(patience: number) {
    this.#until = Date.now() + patience
  }

  /** Returns the pause after a response; undefined: it is final. */
  afterResponse(status: number, code: string, retryAfter: string | null): number | undefined {
    if (status !== 429 && status !== 503 && code !== 'idempotency_in_progress') return undefined
    return this.#pause(parseRetryAfter(retryAfter))
  }

  /** Returns the pause after the network lost a request; undefined: that is final. */
  afterLoss(): number | undefined {
    return ++this.#lost > maxLost ? undefined : this.#pause(undefined)
  }

  #pause(demanded: number | undefined): number | undefined {
    let pause = demanded ?? Math.min(firstPause * 2 ** Math.min(this.#times, 10), longestPause)
    this.#times++
    pause += (Math.random() * pause) / 4 // concurrent calls should not be repeated at the same time
    return Date.now() + pause > this.#until ? undefined : pause
  }
}

/** Parses Retry-After (RFC 9110 §10.2.3). */
function parseRetryAfter(value: string | null): number | undefined {
  if (value === null) return undefined
  const ms = /^\d+$/.test(value) ? Number(value) * 1000 : Date.parse(value) - Date.now()
  return ms > 0 ? ms : undefined // NaN is not
}
