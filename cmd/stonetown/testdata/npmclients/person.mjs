// A person at a browser, and what the scripts beside this one share.

import assert from 'node:assert/strict'
import dns from 'node:dns'

/**
 * What the test has set up: the issuer, a user's email and password, an audience that every
 * user may call, applications by name, and the key with which one of them signs.
 */
export const { issuer, email, password, audience, applications, key } = JSON.parse(process.env.SETUP)

/** That key, to sign with. */
export const signer = { kid: key.kid, key: await crypto.subtle.importKey('jwk', key, { name: 'ECDSA', namedCurve: 'P-256' }, false, ['sign']) }

// Names below localhost are the machine itself (RFC 6761 §6.3). Browsers know that; Node.js
// asks the system, which may not.
const { lookup } = dns
dns.lookup = (name, ...rest) => lookup(name.endsWith('.localhost') ? '127.0.0.1' : name, ...rest)

/** Says what has been shown, a line for each step. */
export const step = (text) => console.log(`ok ${text}`)

/** A user who has signed in with a browser that shows nothing. */
export class Person {
  #cookies = new Map()
  #session

  static async signIn() {
    const person = new Person()
    const { session_token } = await person.#post('/api/v1/auth/sign-in', { email, password })
    person.#session = session_token
    return person
  }

  /** Opens an address of the server, or follows a link to one, and returns the answer. */
  async visit(url, init = {}) {
    const cookie = [...this.#cookies].map((pair) => pair.join('=')).join('; ')
    const response = await fetch(new URL(url, issuer), { ...init, redirect: 'manual', headers: { ...init.headers, cookie } })
    for (const set of response.headers.getSetCookie()) {
      const [, name, value] = /^([^=]+)=([^;]*)/.exec(set)
      if (/max-age=0/i.test(set)) this.#cookies.delete(name)
      else this.#cookies.set(name, value)
    }
    return response
  }

  async #post(path, body) {
    const headers = { 'content-type': 'application/json' }
    if (this.#session) headers.authorization = `Bearer ${this.#session}`
    const response = await this.visit(path, { method: 'POST', headers, body: JSON.stringify(body) })
    const text = await response.text()
    assert.equal(response.status, 200, `${path}: ${response.status} ${text}`)
    return JSON.parse(text).data
  }

  /**
   * Goes where an application sends its user, and lets it have what it wants if asked.
   * Returns the address at the application where that ends, and whether there was a question.
   */
  async authorize(url) {
    let asked = false
    for (let hops = 0; hops < 5; hops++) {
      const response = await this.visit(url)
      const location = response.headers.get('location')
      assert.ok(location, `${url}: ${response.status}`)
      const to = new URL(location, issuer)
      if (to.origin !== new URL(issuer).origin) return { back: to, asked }
      if (to.pathname === '/auth/consent') {
        asked = true
        const answer = await this.#post('/api/v1/auth/consent', { flow_id: to.searchParams.get('flow'), decision: 'allow' })
        url = answer.redirect_to
      } else {
        url = to.href
      }
    }
    assert.fail(`${url} leads nowhere`)
  }

  /** Connects a device by the code that it shows. */
  connect(user_code) {
    return this.#post('/api/v1/auth/device', { user_code, decision: 'allow' })
  }

  /** Says whether they are still signed in. */
  async isSignedIn() {
    const response = await this.visit('/api/v1/me/profile', { headers: { authorization: `Bearer ${this.#session}` } })
    return response.ok
  }
}
