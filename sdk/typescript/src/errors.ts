import type { ErrorCode } from './codes.gen.js'

/** An error of the server. */
export class StonetownError extends Error {
  override name = 'StonetownError'

  constructor(
    /** The status of the response. */
    readonly status: number,
    /** For branching; empty if the response is not from the API. Newer servers may have other codes. */
    readonly code: ErrorCode | (string & {}),
    message: string,
    /** Depends on the code. */
    readonly details: Record<string, unknown> = {},
    /** Quote it to the operator of the server. */
    readonly requestId = '',
  ) {
    super(message)
  }

  /** Parses an error response. The errors of OAuth have the same members. */
  static of(status: number, body: unknown): StonetownError {
    const { error, message, details, request_id: id } = isObject(body) ? body : {}
    return new StonetownError(
      status,
      typeof error === 'string' ? error : '',
      typeof message === 'string' && message !== '' ? message : `the server responded with ${status}`,
      isObject(details) ? details : {},
      typeof id === 'string' ? id : '',
    )
  }
}

/** No response of the server arrived, or it is not from Stonetown. The `cause` has the reason. */
export class ConnectionError extends Error {
  override name = 'ConnectionError'
}

/** Reports whether an error is one of the server that has a code. */
export function hasCode(error: unknown, code: ErrorCode): error is StonetownError {
  return error instanceof StonetownError && error.code === code
}

/** The error if another program answers at the URL of the server. */
export function notStonetown(): ConnectionError {
  return new ConnectionError('the response is not from Stonetown: check the base URL')
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null
}
