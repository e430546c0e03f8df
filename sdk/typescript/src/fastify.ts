/** Hooks for Fastify. */

import type { FastifyReply, FastifyRequest } from 'fastify'

import { refuse, type GuardOptions, type ResourceOf } from './guard.js'

/** Protects routes of Fastify. */
export interface FastifyGuard {
  /** Returns a preHandler hook that requires an action on the resource of a request. */
  allow(action: string, resourceOf: ResourceOf<FastifyRequest>): (request: FastifyRequest, reply: FastifyReply) => Promise<void>
}

/** Returns a guard. */
export function guard(options: GuardOptions<FastifyRequest>): FastifyGuard {
  return {
    allow: (action, resourceOf) => async (request, reply) => {
      const refused = await refuse(options, request, action, resourceOf)
      if (refused) await reply.code(refused.status).send(refused.body)
    },
  }
}
