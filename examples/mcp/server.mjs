// A server of the Model Context Protocol that Stonetown protects: notes, which an agent can list
// with the scope notes:read, and add to with notes:write.
//
// It is a resource server only. Its metadata (RFC 9728) leads clients to the authorization server
// of the tenant, and its challenges say which scope a request lacks (RFC 6750 §3). It accepts
// access tokens that name it as audience (RFC 8707), and passes them to nobody.
//
//   ISSUER    address of the tenant, such as https://acme.example.com
//   PORT      port to listen on, on the loopback interface; default: any
//   RESOURCE  address of this server as clients know it; default: http://localhost:PORT/mcp

import { once } from 'node:events'
import { createServer } from 'node:http'

import express from 'express'
import { createRemoteJWKSet, jwtVerify } from 'jose'
import { z } from 'zod'
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js'
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js'
import { InvalidTokenError } from '@modelcontextprotocol/sdk/server/auth/errors.js'
import { requireBearerAuth } from '@modelcontextprotocol/sdk/server/auth/middleware/bearerAuth.js'

const issuer = process.env.ISSUER
if (!issuer) throw new Error('ISSUER is required')

const app = express()
const listener = createServer(app).listen(Number(process.env.PORT ?? 0), '127.0.0.1')
await once(listener, 'listening')
const resource = process.env.RESOURCE ?? `http://localhost:${listener.address().port}/mcp`
const { origin, pathname } = new URL(resource)
const metadata = `/.well-known/oauth-protected-resource${pathname}`

app.get(metadata, (_, response) => {
  response.json({
    resource,
    authorization_servers: [issuer],
    scopes_supported: ['notes:read', 'notes:write'],
    bearer_methods_supported: ['header'],
    resource_name: 'Notes',
  })
})

// The keys of the tenant, which are fetched when they are needed and cached.
const keys = createRemoteJWKSet(new URL('/.well-known/jwks.json', issuer))

/** Verifies an access token (RFC 9068 §4). */
async function verifyAccessToken(token) {
  try {
    const { payload } = await jwtVerify(token, keys, { issuer, audience: resource, typ: 'at+jwt' })
    // act names the agents that act for the user, the last one first (RFC 8693 §4.1).
    return {
      token,
      clientId: payload.client_id,
      scopes: payload.scope?.split(' ') ?? [],
      expiresAt: payload.exp,
      resource: new URL(resource),
      extra: { user: payload.sub, act: payload.act },
    }
  } catch {
    throw new InvalidTokenError('the access token is not valid')
  }
}

/** Requires a token with some scopes, or answers with a challenge that names them. */
const requireScopes = (...requiredScopes) =>
  requireBearerAuth({ verifier: { verifyAccessToken }, requiredScopes, resourceMetadataUrl: origin + metadata, expectedResource: new URL(resource) })

const mayRead = requireScopes('notes:read')
const mayWrite = requireScopes('notes:read', 'notes:write')

const notes = new Map() // of each user

/** The tools, for the user of a token. */
function toolsFor({ user }) {
  const server = new McpServer({ name: 'notes', version: '1.0.0' })
  const own = () => notes.get(user) ?? []
  server.registerTool('list_notes', { description: 'The notes of the user.' }, () => ({ content: own().map((text) => ({ type: 'text', text })) }))
  server.registerTool('add_note', { description: 'Adds a note.', inputSchema: { text: z.string().max(1000) } }, ({ text }) => {
    notes.set(user, [...own(), text].slice(-100))
    return { content: [{ type: 'text', text: 'added' }] }
  })
  return server
}

const adds = (message) => message?.method === 'tools/call' && message.params?.name === 'add_note'

/** Requires the scopes of the tools that a request calls. */
function permitted(request, response, next) {
  const messages = [request.body].flat()
  const check = messages.some(adds) ? mayWrite : mayRead
  check(request, response, next)
}

app.post(pathname, express.json({ limit: '64kb' }), permitted, async (request, response) => {
  const server = toolsFor(request.auth.extra)
  const transport = new StreamableHTTPServerTransport({ sessionIdGenerator: undefined }) // without sessions
  response.on('close', () => server.close())
  await server.connect(transport)
  await transport.handleRequest(request, response, request.body)
})
app.all(pathname, mayRead, (_, response) => response.status(405).end())

console.log(resource)
