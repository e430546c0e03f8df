/**
 * Carries consistency tokens from call to call. A check with it reflects every write with it that has
 * returned, and nothing older than what an earlier check with it was answered from. The first check
 * reflects all writes, as every check does without it; later ones need not be newer than that, so that
 * a server with a shared database can answer them from memory. Use one for each request of a service,
 * or each session of a person.
 */
export class Consistency {
  #token: string | undefined
  #version = 0

  /** @param token - goes on from what calls elsewhere have seen or made */
  constructor(token?: string) {
    this.#token = token
  }

  /** The token that the next check is sent with, to go on elsewhere. Without one, it reflects all writes. */
  get token(): string | undefined {
    return this.#token
  }

  /** @internal Notes that a call begins. */
  begin(): Begun {
    return { token: this.#token, version: this.#version }
  }

  /**
   * @internal Notes the token of the state that a call has seen or made. What began at the present
   * version is not older than the present token. Of two writes at the same time it is not known which
   * is newer, so the next check reflects all writes.
   */
  end(begun: Begun, token: string | undefined, wrote: boolean): void {
    if (token === undefined) return
    if (begun.version === this.#version) {
      this.#token = token
    } else if (wrote) {
      this.#token = undefined
    } else {
      return
    }
    this.#version++
  }
}

/** @internal The token with which a call is sent, and its version. */
export interface Begun {
  token: string | undefined
  version: number
}
