/** Middleware for Express. */

import type { Request, RequestHandler } from 'express'

import { refuse, type GuardOptions, type ResourceOf } from './guard.js'

/** Protects routes of Express. */
export interface ExpressGuard {
  /** Returns middleware that requires an action on the resource of a request. */
  allow(action: string, resourceOf: ResourceOf<Request>): RequestHandler
}

/** Returns a guard. */
export function guard(options: GuardOptions<Request>): ExpressGuard {
  return {
    allow: (action, resourceOf) => (request, response, next) => {
      refuse(options, request, action, resourceOf).then((refused) => {
        if (refused) response.status(refused.status).json(refused.body)
        else next()
      }, next)
    },
  }
}
