import type { AddressInfo } from 'node:net'

import express from 'express'
import fastify from 'fastify'
import { expect, test } from 'vitest'

import { consistencyOf, StonetownError, type Checker } from '../src/index.js'
import { guard as expressGuard } from '../src/express.js'
import { guard as fastifyGuard } from '../src/fastify.js'
import { ann } from './server.js'

const failures: unknown[] = []

/** Answers by the ID of the resource. */
const checker: Checker = {
  async allowed(subject, action, resource, options) {
    expect([subject, action, resource.type, typeof options?.consistency]).toEqual([ann, 'view', 'document', 'object'])
    if (resource.external_id === 'absent') throw new StonetownError(404, 'resource_not_found', 'no such document')
    if (resource.external_id === 'down') throw new Error('lost')
    return resource.external_id === 'q3'
  },
}

const users = new Map([['Bearer ann', ann]])
const options = { checker, failed: (_: unknown, error: unknown) => void failures.push(error) }

/** Starts a service on the loopback interface, with one protected route. Returns its address, and how it is stopped. */
const services = {
  async express() {
    const app = express()
    const guard = expressGuard({ ...options, subject: (request) => users.get(request.get('Authorization') ?? '') })
    const view = guard.allow('view', (request) => ({ type: 'document', external_id: String(request.params.id) }))
    app.get('/documents/:id', view, (request, response) => void response.json({ same: consistencyOf(request) === consistencyOf(request) }))
    const listener = app.listen(0, '127.0.0.1')
    await new Promise((resolve) => listener.once('listening', resolve))
    return { port: (listener.address() as AddressInfo).port, close: () => new Promise((resolve) => listener.close(resolve)) }
  },
  async fastify() {
    const app = fastify()
    const guard = fastifyGuard({ ...options, subject: async (request) => users.get(request.headers.authorization ?? '') })
    const view = guard.allow('view', (request) => ({ type: 'document', external_id: (request.params as { id: string }).id }))
    app.get('/documents/:id', { preHandler: view }, async (request) => ({ same: consistencyOf(request) === consistencyOf(request) }))
    await app.listen({ host: '127.0.0.1', port: 0 })
    return { port: (app.server.address() as AddressInfo).port, close: () => app.close() }
  },
}

for (const [name, start] of Object.entries(services)) {
  test(`${name} lets nothing through that is not allowed, also if that cannot be found out`, async () => {
    failures.length = 0
    const { port, close } = await start()
    try {
      const get = async (id: string, authorization = 'Bearer ann') => {
        const response = await fetch(`http://127.0.0.1:${port}/documents/${id}`, { headers: { Authorization: authorization } })
        const { error, same } = (await response.json()) as { error?: string; same?: boolean }
        return [response.status, error ?? same]
      }
      expect(await get('q3')).toEqual([200, true])
      expect(await get('q4')).toEqual([403, 'permission_denied'])
      expect(await get('absent')).toEqual([403, 'permission_denied'])
      expect(await get('q3', 'Bearer eve')).toEqual([401, 'unauthenticated'])
      expect(failures).toEqual([])
      expect(await get('down')).toEqual([503, 'service_unavailable'])
      expect(failures).toHaveLength(1)
    } finally {
      await close()
    }
  })
}
