// Calls all methods of the client against a running server.

import assert from 'node:assert/strict'

import { Batcher, Client, Consistency, StonetownError, hasCode, resource, subject, tuple } from 'stonetown'

const { baseUrl, clientId, clientSecret } = JSON.parse(process.env.SETUP)
const client = new Client({ baseUrl, clientId, clientSecret })
const step = (name) => console.log('ok', name)
const code = (expected) => (error) => hasCode(error, expected) || assert.fail(`${error} instead of ${expected}`)
const all = async (items) => {
  const list = []
  for await (const item of items) list.push(item)
  return list
}
const [ann, bob, plan, folder] = [subject('user:amy'), subject('user:bob'), resource('document:plans/q1 draft?#%é'), resource('folder:2026')]

const { error } = await client.api.POST('/api/v1/resource-types/apply', {
  body: {
    types: [
      { name: 'folder', relations: [{ name: 'owner' }, { name: 'viewer', rewrites: [{ kind: 'this' }, { kind: 'computed', relation: 'owner' }] }] },
      {
        name: 'document',
        relations: [
          { name: 'owner' }, // of the example
          { name: 'parent', subjects: ['folder'] },
          { name: 'viewer', rewrites: [{ kind: 'this' }, { kind: 'computed', relation: 'owner' }, { kind: 'tuple_to_userset', tupleset: 'parent', computed: 'viewer' }] },
        ],
      },
    ],
  },
})
assert.equal(error, undefined)
step('operations of the API')

assert.equal(await client.createRelation(tuple('folder:2026#owner@user:amy')), true)
assert.equal(await client.createRelation(tuple('folder:2026#owner@user:amy')), false)
assert.equal(await client.createRelation({ resource: plan, relation: 'parent', subject: { type: 'folder', id: '2026' } }), true)
assert.equal(await client.allowed(ann, 'view', plan), true)
assert.equal(await client.allowed(bob, 'view', plan), false)
const explained = await client.check({ subject: ann, action: 'view', resource: plan, debug: true })
assert.ok(explained.allowed && explained.reasons.length > 1 && explained.consistencyToken)
const denied = await client.check({ subject: bob, action: 'view', resource: plan, debug: true })
assert.ok(!denied.allowed && denied.denial.ways.length > 0)
await assert.rejects(client.allowed(ann, 'view', resource('document:absent')), code('resource_not_found'))
await assert.rejects(client.deleteRelation(tuple('folder:2026#viewer@user:eve')), code('relation_not_found'))
step('checks and relations')

const create = (text) => ({ op: 'create', ...tuple(text) })
const results = await client.writeRelations([create('folder:2026#viewer@user:bob'), { op: 'delete', ...tuple('folder:2026#viewer@user:bob') }])
assert.deepEqual(results.map(({ status }) => status), ['created', 'deleted'])
const unowned = { preconditions: [{ must_not_exist: { resource_type: 'folder', external_id: '2026', relation: 'owner' } }] }
await assert.rejects(client.writeRelations([create('folder:2026#owner@user:eve')], unowned), code('precondition_failed'))
step('bulk writes')

const many = Array.from({ length: 300 }, (_, n) => create(`document:n${n}#viewer@user:cid`))
await client.writeRelations(many)
const cid = { subject: subject('user:cid'), type: 'document', action: 'view' }
assert.equal(new Set((await all(client.allowedResources(cid))).map(({ external_id }) => external_id)).size, 300)
assert.deepEqual(await client.countAllowedResources({ ...cid, limit: 10 }), { count: 10, exact: false })
assert.deepEqual((await all(client.allowedSubjects({ resource: plan, action: 'view', subject_type: 'user' }))).map(({ id }) => id), ['amy'])
assert.deepEqual((await client.allowedActions({ subject: ann, resource: folder })).sort(), ['delete', 'owner', 'view', 'viewer'])
assert.equal((await all(client.proofs({ subject: ann, action: 'view', resource: plan }))).length, 1)
assert.equal((await client.expand({ resource: plan, action: 'view', depth: 2 })).kind, 'union')
assert.equal((await all(client.relations(folder))).length, 1)
assert.equal((await all(client.findRelations({ subject_type: 'user', subject_id: 'cid' }))).length, 300)
assert.equal(await client.deleteRelations({ resource_type: 'document', relation: 'viewer', subject_type: 'user', subject_id: 'cid' }), 300)
step('lists')

assert.equal(await client.putResource({ ...plan, attributes: { title: 'Plan' } }), false)
assert.equal((await client.getResource(plan)).attributes.title, 'Plan')
assert.ok((await all(client.resources('document'))).some(({ external_id }) => external_id === plan.external_id))
await client.deleteResource(resource('document:n1'))
await assert.rejects(client.getResource(resource('document:n1')), code('resource_not_found'))
step('resources')

const batcher = new Batcher(client)
const consistency = new Consistency()
await Promise.all(
  Array.from({ length: 40 }, async (_, n) => {
    const relation = { resource: resource(`document:c${n}`), relation: 'viewer', subject: subject(`user:u${n % 3}`) }
    await client.createRelation(relation, { consistency })
    const ask = (id) => batcher.allowed(subject(`user:${id}`), 'view', relation.resource, { consistency })
    assert.deepEqual(await Promise.all([ask(`u${n % 3}`), ask('eve')]), [true, false])
  }),
)
assert.ok(consistency.token)
const { decisions } = await client.checkBatch({ checks: [{ subject: ann, action: 'view', resource: plan }, { subject: ann, action: 'view', resource: resource('document:absent') }] })
assert.deepEqual(decisions, [{ allowed: true }, { allowed: false, error: 'resource_not_found' }])
const odd = await Promise.allSettled([batcher.allowed(ann, 'view', plan), batcher.allowed({ type: 'user', id: 'x'.repeat(600) }, 'view', plan)])
assert.deepEqual(odd.map(({ status }) => status), ['fulfilled', 'rejected'])
step('batches and consistency')

const after = (await client.check({ subject: ann, action: 'view', resource: plan })).consistencyToken
await client.createRelation(tuple('folder:2026#viewer@user:dan'))
const changes = []
for await (const event of client.watch({ after })) {
  if (event.event !== 'change') continue
  changes.push(event)
  if (changes.length === 1) await client.deleteRelation(tuple('folder:2026#viewer@user:dan'))
  else break
}
assert.deepEqual(changes.map((event) => event.changes[0].op), ['create', 'delete'])
for await (const { event, gained, lost } of client.watch({ after, type: 'document', action: 'view', subject_type: 'user' })) {
  if (event !== 'decisions') continue
  assert.deepEqual([gained?.[0]?.subject.id ?? null, lost ?? null], ['dan', null])
  break
}
await assert.rejects(all(client.watch({}, { signal: AbortSignal.timeout(50) })), { name: 'TimeoutError' })
await assert.rejects(all(client.watch({ type: 'document' })), code('validation_failed'))
step('watches')

const reader = new Client({ baseUrl, clientId, clientSecret, scopes: ['resources:read'] })
await assert.rejects(reader.createRelation(tuple('folder:2026#owner@user:eve')), code('insufficient_scope'))
await assert.rejects(new Client({ baseUrl, clientId, clientSecret: 'cs_wrong' }).allowed(ann, 'view', plan), (error) => error instanceof StonetownError && error.code === 'invalid_client' && error.status === 401)
step('refusals')
