// The authorization flow of the MCP SDK's client, against the sample server of examples/mcp.

import assert from 'node:assert/strict'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { UnauthorizedError } from '@modelcontextprotocol/sdk/client/auth.js'
import { Person, step } from './person.mjs'

const { resource, document, redirect } = JSON.parse(process.env.SETUP)

/** What an agent keeps: its client, its tokens and the request in progress. */
class Agent {
  redirectUrl = redirect
  sent = [] // authorization requests
  #client
  #tokens
  #verifier

  constructor(clientMetadata, client) {
    this.clientMetadata = { redirect_uris: [redirect], token_endpoint_auth_method: 'none', response_types: ['code'], ...clientMetadata }
    this.#client = client
  }

  state = () => 'state'
  clientInformation = () => this.#client
  saveClientInformation = (client) => void (this.#client = client)
  tokens = () => this.#tokens
  saveTokens = (tokens) => void (this.#tokens = tokens)
  redirectToAuthorization = (url) => void this.sent.push(url)
  saveCodeVerifier = (verifier) => void (this.#verifier = verifier)
  codeVerifier = () => this.#verifier
  invalidateCredentials = (scope) => {
    if (scope === 'all' || scope === 'client') this.#client = undefined
    if (scope === 'all' || scope === 'tokens') this.#tokens = undefined
  }

  get claims() {
    return JSON.parse(Buffer.from(this.#tokens.access_token.split('.')[1], 'base64url'))
  }
}

const connection = (agent) => ({
  client: new Client({ name: 'agent', version: '1.0.0' }),
  transport: new StreamableHTTPClientTransport(new URL(resource), { authProvider: agent }),
})

/** Sends the person where the agent asks to, and redeems the code. */
async function allow(person, agent, transport, consents = true) {
  const request = agent.sent.at(-1)
  assert.equal(request.searchParams.get('resource'), resource)
  assert.equal(request.searchParams.get('code_challenge_method'), 'S256')
  const { back, asked } = await person.authorize(request)
  assert.equal(back.searchParams.get('error'), null, back.href)
  assert.equal(asked, consents)
  await transport.finishAuth(back.searchParams.get('code'))
  return request
}

/** Connects, with the authorization that it takes. */
async function connect(person, agent) {
  const first = connection(agent)
  await assert.rejects(first.client.connect(first.transport), UnauthorizedError)
  const request = await allow(person, agent, first.transport)
  const { client, transport } = connection(agent)
  await client.connect(transport)
  return { client, transport, request }
}

const person = await Person.signIn()
const text = (result) => result.content.map((part) => part.text)

// A client that registers itself.
const registered = new Agent({ client_name: 'Registered agent', grant_types: ['authorization_code', 'refresh_token'] })
let { client } = await connect(person, registered)
assert.match(registered.clientInformation().client_id, /^client_/)
assert.equal(registered.claims.aud, resource)
step('discovery, registration, PKCE, resource indicator, token')
assert.deepEqual((await client.listTools()).tools.map((tool) => tool.name), ['list_notes', 'add_note'])
assert.deepEqual(text(await client.callTool({ name: 'list_notes' })), [])
step('tool call')

const before = registered.tokens()
registered.saveTokens({ ...before, access_token: 'not.a.token' })
assert.deepEqual(text(await client.callTool({ name: 'list_notes' })), [])
assert.notEqual(registered.tokens().refresh_token, before.refresh_token)
assert.equal(registered.sent.length, 1)
assert.equal(registered.claims.aud, resource)
step('401: renewed with the refresh token, for the same resource')

registered.saveTokens({ ...registered.tokens(), access_token: 'not.a.token', refresh_token: 'not a token' })
await assert.rejects(client.callTool({ name: 'list_notes' }), UnauthorizedError)
await allow(person, registered, client.transport, false) // the user agreed before
assert.deepEqual(text(await client.callTool({ name: 'list_notes' })), [])
step('401: authorized again')

// A client that is described by a document at its address, and that learns which scopes it needs.
const described = new Agent({}, { client_id: document })
const second = await connect(person, described)
client = second.client
assert.equal(second.request.searchParams.get('client_id'), document)
assert.equal(second.request.searchParams.get('scope'), 'notes:read')
assert.deepEqual([described.claims.client_id, described.claims.scope, described.claims.aud], [document, 'notes:read', resource])
assert.equal(described.tokens().refresh_token, undefined)
step('client ID metadata document')

const add = { name: 'add_note', arguments: { text: 'milk' } }
await assert.rejects(client.callTool(add), UnauthorizedError)
const more = await allow(person, described, second.transport)
assert.equal(more.searchParams.get('scope'), 'notes:read notes:write')
assert.deepEqual(text(await client.callTool(add)), ['added'])
assert.deepEqual(text(await client.callTool({ name: 'list_notes' })), ['milk'])
step('insufficient scope: asked for more')
