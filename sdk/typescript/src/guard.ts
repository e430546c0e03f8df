import type { Checker } from './client.js'
import { Consistency } from './consistency.js'
import { hasCode } from './errors.js'
import type { ResourceRef, Subject } from './types.js'

/** How requests to a service are checked. */
export interface GuardOptions<Request> {
  checker: Checker

  /**
   * Returns the subject of a request, such as the user whose token the service has verified. A request
   * without one is answered with 401.
   */
  subject: (request: Request) => Subject | undefined | Promise<Subject | undefined>

  /** Is called with the error of a check that has no answer. The request is then answered with 503. */
  failed?: (request: Request, error: unknown) => void
}

/** Returns the resource of a request. */
export type ResourceOf<Request> = (request: Request) => ResourceRef | Promise<ResourceRef>

/** Why a request does not get through. It is answered with the body in the form of the API's errors. */
export interface Refused {
  status: 401 | 403 | 503
  body: { error: string; message: string }
}

const consistencies = new WeakMap<object, Consistency>()

/** Returns the {@link Consistency} of a request to a service, for the calls that its handler makes. */
export function consistencyOf(request: object): Consistency {
  let consistency = consistencies.get(request)
  if (!consistency) consistencies.set(request, (consistency = new Consistency()))
  return consistency
}

/** Checks a request. It gets through only if it is allowed, and never because of an error. */
export async function refuse<Request extends object>(
  { checker, subject, failed }: GuardOptions<Request>,
  request: Request,
  action: string,
  resourceOf: ResourceOf<Request>,
): Promise<Refused | undefined> {
  try {
    const holder = await subject(request)
    if (!holder) return { status: 401, body: { error: 'unauthenticated', message: 'sign in first' } }
    const resource = await resourceOf(request)
    if (await checker.allowed(holder, action, resource, { consistency: consistencyOf(request) })) return undefined
  } catch (error) {
    if (!hasCode(error, 'resource_not_found')) {
      failed?.(request, error)
      return { status: 503, body: { error: 'service_unavailable', message: 'access could not be checked, try again later' } }
    }
  }
  return { status: 403, body: { error: 'permission_denied', message: 'you are not allowed to do this' } }
}
