// A service with documents, which people see and share as relations allow.
//
//   BASE_URL       address of the tenant; default: http://127.0.0.1:8080, a development server
//   CLIENT_ID      credentials of an application of the tenant with the scopes resources:read and
//   CLIENT_SECRET    resources:write; default: those in BOOTSTRAP
//   BOOTSTRAP      file of a development server; default: ../../data/bootstrap.json
//   PORT           port to listen on, on the loopback interface; default: 3000
//
// To keep the example short, the user is the name in the header Authorization, as in "Demo ann". A
// service takes it from a session or a token that it has verified.

import { readFile } from 'node:fs/promises'

import express from 'express'
import { Batcher, Client, consistencyOf, hasCode } from 'stonetown'
import { guard } from 'stonetown/express'

const env = process.env
const credentials = env.CLIENT_ID
  ? { client_id: env.CLIENT_ID, client_secret: env.CLIENT_SECRET }
  : JSON.parse(await readFile(env.BOOTSTRAP ?? new URL('../../data/bootstrap.json', import.meta.url), 'utf8'))

const client = new Client({
  baseUrl: env.BASE_URL ?? 'http://127.0.0.1:8080',
  clientId: credentials.client_id,
  clientSecret: credentials.client_secret,
})

// The model: owners of a document share it, and may view it themselves.
const { error } = await client.api.POST('/api/v1/resource-types', {
  body: {
    name: 'document',
    relations: [{ name: 'owner' }, { name: 'viewer', rewrites: [{ kind: 'this' }, { kind: 'computed', relation: 'owner' }] }],
    actions: { share: 'owner' },
  },
})
if (error) throw new Error(error.message)

const texts = new Map() // by ID
const userOf = (request) => /^Demo (\w+)$/.exec(request.get('Authorization') ?? '')?.[1]
const subjectOf = (request) => userOf(request) && { type: 'user', id: userOf(request) }
const documentOf = (request) => ({ type: 'document', external_id: request.params.id })
const { allow } = guard({ checker: new Batcher(client), subject: subjectOf, failed: (_, error) => console.error(error) })

const app = express()
app.use(express.text())

app.put('/documents/:id', async (request, response) => {
  if (!userOf(request)) return response.sendStatus(401)
  const owner = { op: 'create', resource: documentOf(request), relation: 'owner', subject: subjectOf(request) }
  const unowned = { must_not_exist: { resource_type: 'document', external_id: request.params.id, relation: 'owner' } }
  try {
    await client.writeRelations([owner], { preconditions: [unowned] }) // of requests that race, one succeeds
  } catch (error) {
    if (hasCode(error, 'precondition_failed')) return response.sendStatus(409)
    throw error
  }
  texts.set(request.params.id, request.body)
  response.sendStatus(201)
})

app.get('/documents', async (request, response) => {
  if (!userOf(request)) return response.sendStatus(401)
  const ids = []
  for await (const { external_id } of client.allowedResources({ subject: subjectOf(request), type: 'document', action: 'view' })) ids.push(external_id)
  response.json(ids)
})

app.get('/documents/:id', allow('view', documentOf), (request, response) => response.send(texts.get(request.params.id)))

app.put('/documents/:id/viewers/:user', allow('share', documentOf), async (request, response) => {
  const viewer = { resource: documentOf(request), relation: 'viewer', subject: { type: 'user', id: request.params.user } }
  await client.createRelation(viewer, { consistency: consistencyOf(request) })
  response.sendStatus(204)
})

const listener = app.listen(Number(env.PORT ?? 3000), '127.0.0.1', () => console.log(`http://127.0.0.1:${listener.address().port}`))
