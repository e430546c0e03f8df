// The server as oauth4webapi sees it: every request and the judgement of every answer by
// itself, as an application, as a device and as somebody's API.

import assert from 'node:assert/strict'
import * as oauth from 'oauth4webapi'
import { Person, applications, audience, email, issuer, signer, step } from './person.mjs'

const { website, guest, service, assured, page, television, machine } = applications
const scope = 'openid email'
const insecure = { [oauth.allowInsecureRequests]: true }

/** What an application is to this library, and how it authenticates. */
const client = (app) => ({ client_id: app.client_id })
const post = (app) => oauth.ClientSecretPost(app.client_secret)
const basic = (app) => oauth.ClientSecretBasic(app.client_secret)

/** What is refused, with the error code that is given. */
const refused = (error) => (thrown) => {
  assert.ok(thrown instanceof oauth.ResponseBodyError, thrown)
  assert.equal(thrown.error, error)
  return true
}

/** What is refused for want of authentication, with the scheme that is asked for first. */
const challenged = (scheme) => (thrown) => {
  assert.ok(thrown instanceof oauth.WWWAuthenticateChallengeError, thrown)
  assert.equal(thrown.cause[0].scheme, scheme)
  return true
}

const person = await Person.signIn()

const as = await oauth.processDiscoveryResponse(new URL(issuer), await oauth.discoveryRequest(new URL(issuer), insecure))
const rfc8414 = await oauth.processDiscoveryResponse(new URL(issuer), await oauth.discoveryRequest(new URL(issuer), { ...insecure, algorithm: 'oauth2' }))
assert.deepEqual(rfc8414, as)
step('discovery, by OpenID Connect and RFC 8414')

/** An authorization request of an application, and what only the application knows of it. */
async function ask(app) {
  const verifier = oauth.generateRandomCodeVerifier()
  const state = oauth.generateRandomState()
  const nonce = oauth.generateRandomNonce()
  const parameters = new URLSearchParams({
    client_id: app.client_id,
    response_type: 'code',
    redirect_uri: app.redirect_uris[0],
    scope,
    state,
    nonce,
    code_challenge: await oauth.calculatePKCECodeChallenge(verifier),
    code_challenge_method: 'S256',
  })
  return { verifier, state, nonce, parameters }
}

const changed = (parameters, changes) => new URLSearchParams({ ...Object.fromEntries(parameters), ...changes })

/** Sends a person to the server with a request, by which they come back. */
async function send(parameters) {
  const url = new URL(as.authorization_endpoint)
  url.search = parameters
  return (await person.authorize(url)).back
}

/** Redeems the code that a person came back with. */
async function redeem(app, authentication, { verifier, state, nonce }, back, options) {
  const callback = oauth.validateAuthResponse(as, client(app), back, state)
  const response = await oauth.authorizationCodeGrantRequest(as, client(app), authentication, callback, app.redirect_uris[0], verifier, { ...insecure, ...options })
  return oauth.processAuthorizationCodeResponse(as, client(app), response, { expectedNonce: nonce, requireIdToken: true })
}

const request = await ask(website)
const back = await send(request.parameters)
// An answer of another server is not taken for this one's (RFC 9207, RFC 9700 §4.4).
assert.equal(back.searchParams.get('iss'), issuer)
const nameless = new URLSearchParams(back.search)
nameless.delete('iss')
for (const mixedUp of [changed(back.searchParams, { iss: 'https://evil.example.com' }), nameless]) {
  assert.throws(() => oauth.validateAuthResponse(as, client(website), mixedUp, request.state), /"iss"/)
}
const denied = await send(changed(request.parameters, { prompt: 'none', max_age: '0' }))
assert.throws(
  () => oauth.validateAuthResponse(as, client(website), denied, request.state),
  (thrown) => thrown instanceof oauth.AuthorizationResponseError && thrown.error === 'login_required',
)
step('authorization responses, mix-up')

let tokens = await redeem(website, post(website), request, back)
const { sub } = oauth.getValidatedIdTokenClaims(tokens)
assert.equal(oauth.getValidatedIdTokenClaims(tokens).email, email)
step('code, PKCE, ID token')

const info = await oauth.userInfoRequest(as, client(website), tokens.access_token, insecure)
assert.equal((await oauth.processUserInfoResponse(as, client(website), sub, info)).email, email)
step('userinfo')

const renew = async (app, authentication, token, options) =>
  oauth.processRefreshTokenResponse(as, client(app), await oauth.refreshTokenGrantRequest(as, client(app), authentication, token, { ...insecure, ...options }))
tokens = await renew(website, post(website), tokens.refresh_token)
assert.equal(oauth.getValidatedIdTokenClaims(tokens).sub, sub)
step('refresh')

/** Judges a request as an API would that is at an address, its audience. */
const accept = (headers, api, options) =>
  oauth.validateJwtAccessToken(as, new Request(api, { headers }), api, { ...insecure, signingAlgorithms: ['ES256'], ...options })
const bearer = (token) => ({ authorization: `Bearer ${token}` })
const ownAPI = await accept(bearer(tokens.access_token), issuer)
assert.deepEqual([ownAPI.sub, ownAPI.client_id, ownAPI.scope], [sub, website.client_id, scope])

const exchange = async (changes) => {
  const form = { subject_token: tokens.access_token, subject_token_type: 'urn:ietf:params:oauth:token-type:access_token', audience, scope: 'email', ...changes }
  const response = await oauth.genericTokenEndpointRequest(as, client(website), basic(website), 'urn:ietf:params:oauth:grant-type:token-exchange', form, insecure)
  return oauth.processGenericTokenEndpointResponse(as, client(website), response)
}
const exchanged = await exchange()
const orders = await accept(bearer(exchanged.access_token), audience)
assert.deepEqual([orders.iss, orders.sub, orders.client_id, orders.scope], [issuer, sub, website.client_id, 'email'])
await assert.rejects(accept(bearer(exchanged.access_token), issuer), /"aud"/)
await assert.rejects(accept(bearer(tokens.id_token), issuer, { signingAlgorithms: ['ES256'] }), /"typ"/)
await assert.rejects(exchange({ scope: 'users:write' }), refused('invalid_scope'))
step('token exchange, and its token at an API (RFC 9068)')

const introspect = async (token) =>
  oauth.processIntrospectionResponse(as, client(website), await oauth.introspectionRequest(as, client(website), basic(website), token, insecure))
assert.deepEqual([(await introspect(tokens.access_token)).active, (await introspect(exchanged.access_token)).aud], [true, [audience]])
await oauth.processRevocationResponse(await oauth.revocationRequest(as, client(website), basic(website), tokens.refresh_token, insecure))
for (const token of [tokens.access_token, tokens.refresh_token, exchanged.access_token]) {
  assert.equal((await introspect(token)).active, false)
}
await assert.rejects(renew(website, basic(website), tokens.refresh_token), refused('invalid_grant'))
step('introspection, revocation')

const push = async (app, authentication, parameters, options) => {
  const response = await oauth.pushedAuthorizationRequest(as, client(app), authentication, parameters, { ...insecure, ...options })
  const { request_uri } = await oauth.processPushedAuthorizationResponse(as, client(app), response)
  return new URLSearchParams({ client_id: app.client_id, request_uri })
}
const asked = await ask(guest)
const pushed = await redeem(guest, basic(guest), asked, await send(await push(guest, basic(guest), asked.parameters)))
assert.equal(oauth.getValidatedIdTokenClaims(pushed).sub, sub)
step('pushed request')

const sign = oauth.PrivateKeyJwt(signer)
const begun = await ask(service)
const signed = await redeem(service, sign, begun, await send(await push(service, sign, begun.parameters)))
const forged = oauth.PrivateKeyJwt({ ...signer, key: (await oauth.generateKeyPair('ES256')).privateKey })
await assert.rejects(renew(service, forged, signed.refresh_token), challenged('basic'))
assert.equal(oauth.getValidatedIdTokenClaims(await renew(service, sign, signed.refresh_token)).sub, sub)
step('private_key_jwt: pushed request, code, refresh')

// Everything that can be signed is: the request (RFC 9101), by value and pushed, the response to it
// (JARM), what introspection says (RFC 9701), and the claims of UserInfo.
const signing = { ...client(assured), authorization_signed_response_alg: 'ES256', introspection_signed_response_alg: 'ES256', userinfo_signed_response_alg: 'ES256' }
for (const ways of [{ push: false }, { push: true }]) {
  const wanted = await ask(assured)
  wanted.parameters.set('response_mode', 'jwt')
  wanted.parameters.set('scope', 'openid') // the address is asked for by its name
  wanted.parameters.set('claims', JSON.stringify({ id_token: { email: null, sub: { value: sub } }, userinfo: { email: null } }))
  const object = new URLSearchParams({ client_id: assured.client_id, request: await oauth.issueRequestObject(as, signing, wanted.parameters, signer) })
  const arrived = await send(ways.push ? await push(assured, sign, object) : object)
  assert.deepEqual([...arrived.searchParams.keys()], ['response'])
  const answer = await oauth.validateJwtAuthResponse(as, signing, arrived, wanted.state, insecure)
  const response = await oauth.authorizationCodeGrantRequest(as, signing, sign, answer, assured.redirect_uris[0], wanted.verifier, insecure)
  const issued = await oauth.processAuthorizationCodeResponse(as, signing, response, { expectedNonce: wanted.nonce, requireIdToken: true })
  assert.equal(oauth.getValidatedIdTokenClaims(issued).email, email)
  const said = await oauth.introspectionRequest(as, signing, sign, issued.access_token, { ...insecure, requestJwtResponse: true })
  assert.equal((await oauth.processIntrospectionResponse(as, signing, said)).sub, sub)
  await oauth.validateApplicationLevelSignature(as, said, insecure)
  const profile = await oauth.userInfoRequest(as, signing, issued.access_token, insecure)
  assert.match(profile.headers.get('content-type'), /^application\/jwt/)
  assert.equal((await oauth.processUserInfoResponse(as, signing, sub, profile)).email, email)
  await oauth.validateApplicationLevelSignature(as, profile, insecure)
}
const plain = await ask(assured)
assert.match((await send(plain.parameters)).searchParams.get('error'), /^invalid_request/)
step('signed requests and responses (JAR, JARM, RFC 9701, UserInfo), single claims')

const DPoP = oauth.DPoP(client(page), await oauth.generateKeyPair('ES256'))
const theirs = await ask(page)
theirs.parameters.set('dpop_jkt', await DPoP.calculateThumbprint())
let bound = await redeem(page, oauth.None(), theirs, await send(theirs.parameters), { DPoP })
assert.equal(bound.token_type, 'dpop')
const thief = oauth.DPoP(client(page), await oauth.generateKeyPair('ES256'))
await assert.rejects(renew(page, oauth.None(), bound.refresh_token, { DPoP: thief }), refused('invalid_grant'))
bound = await renew(page, oauth.None(), bound.refresh_token, { DPoP })
const resource = new URL(as.userinfo_endpoint)
const read = (key) => oauth.protectedResourceRequest(bound.access_token, 'GET', resource, undefined, undefined, { ...insecure, DPoP: key })
assert.equal((await (await read(DPoP)).json()).sub, sub)
await assert.rejects(read(thief), challenged('dpop'))
await assert.rejects(read(), challenged('bearer'))
step('DPoP: code, refresh, protected resource')

// An API looks at the proof as well.
let seen
await oauth.protectedResourceRequest(bound.access_token, 'GET', new URL(issuer), undefined, undefined, {
  ...insecure,
  DPoP,
  [oauth.customFetch]: async (_, { headers }) => {
    seen = headers
    return new Response()
  },
})
assert.ok((await accept(seen, issuer, { requireDPoP: true })).cnf.jkt)
await assert.rejects(accept(bearer(bound.access_token), issuer), /no DPoP HTTP Header/)
step('DPoP at an API')

const began = await oauth.deviceAuthorizationRequest(as, client(television), oauth.None(), { scope }, insecure)
const waiting = await oauth.processDeviceAuthorizationResponse(as, client(television), began)
const poll = async () =>
  oauth.processDeviceCodeResponse(as, client(television), await oauth.deviceCodeGrantRequest(as, client(television), oauth.None(), waiting.device_code, insecure))
await assert.rejects(poll(), refused('authorization_pending'))
await person.connect(waiting.user_code)
await new Promise((resolve) => setTimeout(resolve, waiting.interval * 1000))
assert.equal(oauth.getValidatedIdTokenClaims(await poll()).sub, sub)
step('device')

const present = async (authentication) =>
  oauth.processClientCredentialsResponse(as, client(machine), await oauth.clientCredentialsGrantRequest(as, client(machine), authentication, { scope: 'resources:read' }, insecure))
for (const authentication of [post(machine), basic(machine)]) {
  const { access_token } = await present(authentication)
  assert.equal((await accept(bearer(access_token), issuer)).sub, machine.client_id)
}
await assert.rejects(present(oauth.ClientSecretPost('wrong')), challenged('basic'))
step('client credentials')

const last = await ask(website)
tokens = await redeem(website, basic(website), last, await send(last.parameters))
const leave = new URL(as.end_session_endpoint)
const goodbye = website.post_logout_redirect_uris[0]
leave.search = new URLSearchParams({ id_token_hint: tokens.id_token, post_logout_redirect_uri: goodbye })
assert.equal((await person.authorize(leave)).back.href, goodbye)
assert.equal(await person.isSignedIn(), false)
assert.equal((await introspect(tokens.access_token)).active, false)
step('logout')
