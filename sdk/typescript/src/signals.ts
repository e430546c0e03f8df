/** A signal with a time limit. */
export interface Deadline {
  signal: AbortSignal
  /** Removes the time limit. */
  clear(): void
}

/** Returns a signal that is aborted after a number of milliseconds, and with another signal. */
export function deadline(ms: number | undefined, signal?: AbortSignal | null): Deadline {
  const controller = new AbortController()
  const timer =
    ms === undefined
      ? undefined
      : setTimeout(() => controller.abort(new DOMException(`no response within ${ms} ms`, 'TimeoutError')), ms)
  return {
    signal: signal ? AbortSignal.any([signal, controller.signal]) : controller.signal,
    clear: () => clearTimeout(timer),
  }
}

/** Waits for a promise, until a signal is aborted. */
export async function abortable<T>(promise: Promise<T>, signal?: AbortSignal | null): Promise<T> {
  if (!signal) return promise
  promise.catch(() => {}) // it may fail after the caller has left
  signal.throwIfAborted()
  let abort!: () => void
  const aborted = new Promise<never>((_, reject) => {
    abort = () => reject(signal.reason)
    signal.addEventListener('abort', abort)
  })
  try {
    return await Promise.race([promise, aborted])
  } finally {
    signal.removeEventListener('abort', abort)
  }
}

/** Waits a number of milliseconds, unless a signal is aborted. */
export async function sleep(ms: number, signal?: AbortSignal | null): Promise<void> {
  let timer: ReturnType<typeof setTimeout> | undefined
  try {
    await abortable(new Promise<void>((resolve) => (timer = setTimeout(resolve, ms))), signal)
  } finally {
    clearTimeout(timer)
  }
}
