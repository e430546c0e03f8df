// The server as openid-client sees it, which checks all that OpenID Connect has clients check.

import assert from 'node:assert/strict'
import * as client from 'openid-client'
import { Person, applications, audience, email, issuer, signer, step } from './person.mjs'

const { website, guest, service, page, television, machine } = applications
const scope = 'openid email'

/** Finds the server, on behalf of an application. */
function discover(app, authentication) {
  return client.discovery(new URL(issuer), app.client_id, app.client_secret, authentication, { execute: [client.allowInsecureRequests] })
}

/** Sends a person from an application to the server and back, and redeems the code. */
async function signIn(person, config, app, { parameters = {}, push = false, ...options } = {}) {
  const pkceCodeVerifier = client.randomPKCECodeVerifier()
  const expectedState = client.randomState()
  const expectedNonce = client.randomNonce()
  const request = {
    scope,
    redirect_uri: app.redirect_uris[0],
    state: expectedState,
    nonce: expectedNonce,
    code_challenge: await client.calculatePKCECodeChallenge(pkceCodeVerifier),
    code_challenge_method: 'S256',
    ...parameters,
  }
  const url = push ? await client.buildAuthorizationUrlWithPAR(config, request, options) : client.buildAuthorizationUrl(config, request)
  const { back, asked } = await person.authorize(url)
  const checks = { pkceCodeVerifier, expectedState, expectedNonce, idTokenExpected: true }
  const tokens = await client.authorizationCodeGrant(config, back, checks, undefined, options)
  return { tokens, url, asked }
}

/** What the server refuses, with the error code that it gives. */
const refused = (error) => (thrown) => {
  assert.ok(thrown instanceof client.ResponseBodyError, thrown)
  assert.equal(thrown.error, error)
  return true
}

const person = await Person.signIn()

const config = await discover(website)
assert.equal(config.serverMetadata().issuer, issuer)
assert.equal(config.serverMetadata().supportsPKCE(), true)
step('discovery')

let { tokens, asked } = await signIn(person, config, website)
const { sub, sid } = tokens.claims()
assert.equal(asked, false)
assert.equal(tokens.claims().email, email)
assert.equal(tokens.token_type, 'bearer')
assert.ok(tokens.expiresIn() > 0)
step('code, PKCE, state, nonce, ID token')

const info = await client.fetchUserInfo(config, tokens.access_token, sub)
assert.equal(info.email, email)
step('userinfo')

const first = tokens.refresh_token
tokens = await client.refreshTokenGrant(config, first)
assert.equal(tokens.claims().sub, sub)
assert.equal(tokens.claims().sid, sid)
assert.notEqual(tokens.refresh_token, first)
step('refresh')

const active = await client.tokenIntrospection(config, tokens.access_token)
assert.deepEqual([active.active, active.sub, active.client_id, active.token_type], [true, sub, website.client_id, 'Bearer'])
assert.equal((await client.tokenIntrospection(config, 'nothing')).active, false)
step('introspection')

const exchange = 'urn:ietf:params:oauth:grant-type:token-exchange'
const subject = { subject_token: tokens.access_token, subject_token_type: 'urn:ietf:params:oauth:token-type:access_token' }
const narrower = await client.genericGrantRequest(config, exchange, { ...subject, scope: 'email' })
assert.deepEqual([narrower.scope, narrower.issued_token_type], ['email', subject.subject_token_type])
const elsewhere = await client.genericGrantRequest(config, exchange, { ...subject, audience })
assert.deepEqual((await client.tokenIntrospection(config, elsewhere.access_token)).aud, [audience])
await assert.rejects(client.genericGrantRequest(config, exchange, { ...subject, audience: `${audience}/other` }), refused('invalid_target'))
step('token exchange')

await client.tokenRevocation(config, tokens.refresh_token)
assert.equal((await client.tokenIntrospection(config, tokens.access_token)).active, false)
await assert.rejects(client.refreshTokenGrant(config, tokens.refresh_token), refused('invalid_grant'))
step('revocation')

const asGuest = await discover(guest, client.ClientSecretBasic(guest.client_secret))
const pushed = await signIn(person, asGuest, guest, { push: true, parameters: { prompt: 'consent' } })
assert.deepEqual([...pushed.url.searchParams.keys()].sort(), ['client_id', 'request_uri'])
assert.equal(pushed.asked, true)
assert.equal(pushed.tokens.claims().sub, sub)
step('pushed request, consent')

const asService = await discover(service, client.PrivateKeyJwt(signer))
const signed = (await signIn(person, asService, service, { push: true })).tokens
assert.equal((await client.refreshTokenGrant(asService, signed.refresh_token)).claims().sub, sub)
assert.equal((await client.tokenIntrospection(asService, signed.access_token)).client_id, service.client_id)
step('private_key_jwt: pushed request, code, refresh, introspection')

const asPage = await discover(page)
const DPoP = client.getDPoPHandle(asPage, await client.randomDPoPKeyPair())
let bound = (await signIn(person, asPage, page, { push: true, DPoP })).tokens
assert.equal(bound.token_type, 'dpop')
await assert.rejects(client.refreshTokenGrant(asPage, bound.refresh_token), refused('invalid_dpop_proof'))
bound = await client.refreshTokenGrant(asPage, bound.refresh_token, undefined, { DPoP })
assert.equal(bound.token_type, 'dpop')
const userinfo = new URL(asPage.serverMetadata().userinfo_endpoint)
for (const method of ['GET', 'POST']) {
  const response = await client.fetchProtectedResource(asPage, bound.access_token, userinfo, method, undefined, undefined, { DPoP })
  assert.equal((await response.json()).sub, sub)
}
assert.equal((await client.fetchUserInfo(asPage, bound.access_token, sub, { DPoP })).email, email)
await assert.rejects(client.fetchProtectedResource(asPage, bound.access_token, userinfo, 'GET'), client.WWWAuthenticateChallengeError)
step('DPoP: code, refresh, protected resource')

const asDevice = await discover(television)
const waiting = await client.initiateDeviceAuthorization(asDevice, { scope })
await person.connect(waiting.user_code)
const device = await client.pollDeviceAuthorizationGrant(asDevice, waiting)
assert.equal(device.claims().sub, sub)
assert.equal((await client.fetchUserInfo(asDevice, device.access_token, sub)).email, email)
step('device')

const asMachine = await discover(machine, client.ClientSecretBasic(machine.client_secret))
const own = await client.clientCredentialsGrant(asMachine, { scope: 'resources:read' })
assert.deepEqual([own.scope, own.refresh_token], ['resources:read', undefined])
await assert.rejects(client.clientCredentialsGrant(asMachine, { scope: 'users:write' }), refused('invalid_scope'))
step('client credentials')

const last = (await signIn(person, config, website)).tokens
const state = client.randomState()
const leave = client.buildEndSessionUrl(config, { id_token_hint: last.id_token, post_logout_redirect_uri: website.post_logout_redirect_uris[0], state })
const left = await person.authorize(leave)
assert.equal(left.back.href, `${website.post_logout_redirect_uris[0]}?state=${state}`)
assert.equal(await person.isSignedIn(), false)
await assert.rejects(client.refreshTokenGrant(config, last.refresh_token), refused('invalid_grant'))
await assert.rejects(client.fetchUserInfo(config, last.access_token, sub), client.WWWAuthenticateChallengeError)
step('logout')
