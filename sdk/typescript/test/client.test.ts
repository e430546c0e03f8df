import { readFile } from 'node:fs/promises'
import { expect, test } from 'vitest'

import { Consistency, resource, subject, tuple } from '../src/index.js'
import { kindOf } from '../src/repeatable.js'
import { ann, FakeServer, ok, q3, viewer } from './server.js'

test('lists read a page when the one before has been used up', async () => {
  const server = new FakeServer(({ body }) => ok([{ type: 'document', external_id: body.cursor ?? 'first' }], { next_cursor: body.cursor === 'last' ? null : 'last' }))
  const input = { subject: ann, type: 'document', action: 'view' }
  const all: string[] = []
  for await (const { external_id } of server.client().allowedResources(input)) all.push(external_id)
  expect(all).toEqual(['first', 'last'])
  expect(server.got.map(({ body }) => body)).toEqual([
    { ...input, limit: 250 },
    { ...input, limit: 250, cursor: 'last' },
  ])
  for await (const _ of server.client().allowedResources(input)) break
  expect(server.got).toHaveLength(3)
})

test('a deletion goes on until nothing is left', async () => {
  const server = new FakeServer((_, n) => ok({ deleted: 2, has_more: n === 1, limit: 2 }, { next_cursor: n === 1 ? 'c' : null }))
  expect(await server.client().deleteRelations({ resource_type: 'document' })).toBe(4)
  expect(server.got.map(({ path }) => path)).toEqual(['/api/v1/relations?resource_type=document', '/api/v1/relations?resource_type=document&cursor=c'])
  expect(new Set(server.got.map(({ headers }) => headers.get('Idempotency-Key'))).size).toBe(2)
})

test('an ID is one segment of a path', async () => {
  const server = new FakeServer(() => new Response(null, { status: 204 }))
  const client = server.client()
  await client.deleteRelation({ ...viewer, resource: { type: 'document', external_id: 'a/../b?c d%' } })
  expect(server.got[0]?.path).toBe('/api/v1/resources/document/a%2F..%2Fb%3Fc%20d%25/relations')
  expect(server.got[0]?.body).toEqual({ relation: 'viewer', subject: ann })
  for (const external_id of ['.', '..']) await expect(client.deleteResource({ type: 'document', external_id })).rejects.toThrow(TypeError)
})

test('checks have the token of what the calls before them have seen or made', async () => {
  const server = new FakeServer(({ method, body }, n) => {
    if (method === 'DELETE') return new Response(null, { status: 204, headers: { 'X-Consistency-Token': `${n}` } })
    return ok(body.checks ? [{ allowed: true }] : { allowed: true }, { consistency_token: `${n}` })
  })
  const client = server.client()
  const consistency = new Consistency()
  const question = { subject: ann, action: 'view', resource: q3 }
  await client.check(question, { consistency })
  await client.check(question, { consistency })
  await client.createRelation(viewer, { consistency })
  await client.check({ ...question, consistency_token: '0' }, { consistency })
  await client.check({ ...question, at: '2026-11-22T09:30:00Z' }, { consistency })
  await client.checkBatch({ checks: [question] }, { consistency })
  await client.deleteRelation(viewer, { consistency })
  expect((await client.check(question, { consistency })).consistencyToken).toBe('8')
  expect(server.got.map(({ body }) => body.consistency_token)).toEqual([undefined, '1', undefined, '0', undefined, '3', undefined, '7'])
  expect(consistency.token).toBe('8')
})

test('the token never goes back behind a write that has returned', () => {
  const c = new Consistency('elsewhere')
  const [check, write, other] = [c.begin(), c.begin(), c.begin()]
  c.end(write, 'write', true)
  c.end(check, 'before the write', false)
  expect(c.token).toBe('write')
  c.end(other, 'another write, older or newer', true)
  expect(c.token).toBeUndefined()
  c.end(c.begin(), 'after both', false)
  expect(c.token).toBe('after both')
})

test('names are parsed as on the command line', () => {
  expect(resource('document:a:b')).toEqual({ type: 'document', external_id: 'a:b' })
  const subjects = {
    'user:ann': ['user', 'ann'],
    'user:*': ['user', '*'],
    'group:eng#member': ['group', 'eng', 'member'],
    'user:a:b#c#member': ['user', 'a:b#c', 'member'],
    'user:#member': ['user', '#member'],
    'user:a#B': ['user', 'a#B'],
    'user:a#': ['user', 'a#'],
  }
  for (const [text, [type, id, relation]] of Object.entries(subjects)) {
    expect(subject(text)).toEqual(relation ? { type, id, relation } : { type, id })
  }
  expect(tuple('document:q3#viewer@group:eng#member')).toEqual({ resource: q3, relation: 'viewer', subject: { type: 'group', id: 'eng', relation: 'member' } })
  for (const wrong of ['', 'ann', ':', 'user:', ':ann']) {
    expect(() => resource(wrong)).toThrow(TypeError)
    expect(() => subject(wrong)).toThrow(TypeError)
    expect(() => tuple(`document:q3#viewer@${wrong}`)).toThrow(TypeError)
  }
})

// Which requests are repeated, and which have a key, agrees with the OpenAPI document.
test('all that takes an Idempotency-Key is a write', async () => {
  const types = await readFile(new URL('../src/api.gen.ts', import.meta.url), 'utf8')
  const text = types.slice(types.indexOf('export interface operations'))
  const operations = new Map(text.split(/\n    (?=[a-zA-Z]+: \{\n        parameters: )/).slice(1).map((body) => [body.slice(0, body.indexOf(':')), body]))
  let writes = 0
  for (const path of types.slice(types.indexOf('export interface paths'), types.indexOf('export type webhooks')).split(/\n    (?="\/)/).slice(1)) {
    const name = path.slice(1, path.indexOf('"', 1)).replace(/\{\w+\}/g, 'x')
    for (const [, method = '', operation = ''] of path.matchAll(/\n        (get|put|post|delete|patch): operations\["(\w+)"\]/g)) {
      const keyed = operations.get(operation)?.slice(0, operations.get(operation)?.indexOf('responses: {')).includes('"Idempotency-Key"?: ') ?? false
      const kind = kindOf(method.toUpperCase(), name)
      if (kind === 'write') writes++
      // Requests that are not repeated may take a key, too.
      if (kind !== 'other') expect([operation, kind]).toEqual([operation, keyed ? 'write' : 'question'])
    }
  }
  expect(writes).toBeGreaterThan(50)
})
