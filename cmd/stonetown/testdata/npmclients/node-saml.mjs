// A SAML service provider on npm's @node-saml/node-saml, as a website: /sign-in, /sign-out. SETUP has
// the key and the certificate of its TLS and of its messages. It writes its address to stdout, and
// reads its configuration from stdin, one line of JSON, as it gets its address first.

import { createServer } from 'node:https'
import { createInterface } from 'node:readline'
import { SAML } from '@node-saml/node-saml'

const { key, certificate } = JSON.parse(process.env.SETUP)
const requests = new Map() // that wait for a response: the cache of both bindings
const cacheProvider = {
  saveAsync: async (id, value) => { requests.set(id, value); return { value, createdAt: Date.now() } },
  getAsync: async id => requests.get(id) ?? null,
  removeAsync: async id => { requests.delete(id); return id },
}
let config, self, profile

const saml = more => new SAML({
  entryPoint: config.sso, logoutUrl: config.slo, idpCert: config.certificates, idpIssuer: config.idp,
  issuer: self + '/saml', audience: self + '/saml', callbackUrl: self + '/acs', logoutCallbackUrl: self + '/slo',
  privateKey: key, decryptionPvk: key, publicCert: certificate, signatureAlgorithm: 'sha256', digestAlgorithm: 'sha256',
  wantAssertionsSigned: true, wantAuthnResponseSigned: true, identifierFormat: config.format,
  validateInResponseTo: 'always', cacheProvider, acceptedClockSkewMs: 0, ...more,
})

const answer = async (request, body) => {
  const url = new URL(request.url, self)
  switch (url.pathname) {
    case '/sign-in': {
      const s = saml({
        ...(url.searchParams.has('post') && { authnRequestBinding: 'HTTP-POST', skipRequestCompression: true }), // the binding has none
        forceAuthn: url.searchParams.has('force'), passive: url.searchParams.has('passive'),
        ...(url.searchParams.has('mfa') ? { authnContext: ['https://refeds.org/profile/mfa'] } : { disableRequestedAuthnContext: true }),
      })
      if (url.searchParams.has('post')) return await s.getAuthorizeFormAsync('state-1', request.headers.host)
      return { to: await s.getAuthorizeUrlAsync('state-1', request.headers.host, {}) }
    }
    case '/acs': {
      const form = Object.fromEntries(new URLSearchParams(body))
      if (form.RelayState !== 'state-1') throw new Error(`RelayState ${form.RelayState}`)
      profile = (await saml().validatePostResponseAsync(form)).profile
      return `<!doctype html><main><h1>Hello ${profile.nameID}</h1><p>${profile.mail} in ${profile.groups}</p></main>`
    }
    case '/sign-out':
      return { to: await saml().getLogoutUrlAsync(profile, 'state-2', {}) }
    case '/slo': {
      const query = Object.fromEntries(url.searchParams)
      const { loggedOut } = await saml().validateRedirectAsync(query, url.search.slice(1))
      if (!loggedOut || query.RelayState !== 'state-2') throw new Error(`not signed out, ${query.RelayState}`)
      return '<!doctype html><main><h1>Goodbye</h1></main>'
    }
  }
}

const server = createServer({ key, cert: certificate }, async (request, response) => {
  let body = ''
  for await (const part of request) body += part
  try {
    const said = await answer(request, body)
    if (said?.to) response.writeHead(302, { location: said.to }).end()
    else response.writeHead(said ? 200 : 404, { 'content-type': 'text/html' }).end(said)
  } catch (error) {
    response.writeHead(500, { 'content-type': 'text/html' }).end(`<!doctype html><main><h1>Refused</h1><pre>${error.message.replaceAll('<', '&lt;')}</pre></main>`)
  }
})
server.listen(0, '127.0.0.1', () => {
  self = `https://127.0.0.1:${server.address().port}`
  console.log(self)
})
for await (const line of createInterface({ input: process.stdin })) config = JSON.parse(line)
process.exit() // the test has ended
