// Deliveries as npm's standardwebhooks sees them: each has the secret of a receiver, and
// whether it must verify.

import assert from 'node:assert/strict'
import { Webhook, WebhookVerificationError } from 'standardwebhooks'

const deliveries = JSON.parse(process.env.SETUP)
assert.ok(deliveries.length > 0)
for (const { name, secret, headers, body, valid } of deliveries) {
  const verify = () => new Webhook(secret).verify(body, headers)
  if (valid) assert.deepEqual(verify(), JSON.parse(body), name)
  else assert.throws(verify, WebhookVerificationError, name)
}
console.log(`${deliveries.length} deliveries`)
