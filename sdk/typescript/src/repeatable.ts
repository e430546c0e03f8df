/**
 * What is safe to send again: a `question` changes nothing; a `write` is executed once, because the
 * server knows it by its Idempotency-Key; `other` requests, such as a sign-in, are sent again only if
 * the server says that it did not execute them.
 */
export type Kind = 'question' | 'write' | 'other'

const questions = [
  /^\/api\/v1\/resources\/(check|check-batch|check-history|expand|simulate|list-[a-z/-]+)$/,
  /^\/api\/v1\/assertions\/[^/]+\/run$/,
  /^\/api\/v1\/resource-types\/plan(\/stream)?$/,
  /^\/access\/v1\//,
  /^\/api\/v1\/(applications|federation\/connections)\/[^/]+\/(claims\/preview|mapping-preview)$/,
  /^\/api\/v1\/mail-templates\/[^/]+\/[^/]+\/preview$/,
]

/** Below /api/v1, but not known by a key: sign-ins, and runs of reports, of which one at a time goes on. */
const unkeyed = /^\/api\/v1\/(auth\/|reports\/[^/]+\/runs$)/

/** Returns the kind of a request, by its path below the base URL. */
export function kindOf(method: string, path: string): Kind {
  if (method === 'GET' || method === 'HEAD' || questions.some((pattern) => pattern.test(path))) return 'question'
  return path.startsWith('/api/v1/') && !unkeyed.test(path) ? 'write' : 'other'
}
