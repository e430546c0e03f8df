// A page of another origin than the API's, which shows what the hook says about three documents.

import { createElement as h, useState } from 'react'
import { createRoot } from 'react-dom/client'
import { Client, Consistency } from 'stonetown'
import { AllowedProvider, useAllowed } from 'stonetown/react'

const { baseUrl, accessToken } = await (await fetch('/setup.json')).json()
const ann = { type: 'user', id: 'ann' }
const client = new Client({ baseUrl, accessToken: () => accessToken })
let batches = 0
const checker = { checkBatch: (batch, options) => (batches++, client.checkBatch(batch, options)) }
const consistency = new Consistency()

function Document({ id }) {
  const resource = { type: 'document', external_id: id }
  const { allowed, pending, error, recheck } = useAllowed('view', resource)
  const share = async () => {
    await client.createRelation({ resource, relation: 'viewer', subject: ann }, { consistency })
    recheck()
  }
  return h('li', null, `${id} ${pending ? 'pending' : error ? `failed: ${error}` : allowed ? 'allowed' : 'denied'} `, h('button', { id, onClick: share }, 'Share'))
}

function Page() {
  const [shown, show] = useState(0)
  return h('main', null, h('ul', null, ['one', 'two', 'three'].map((id) => h(Document, { id, key: id }))), h('button', { id: 'count', onClick: () => show(batches) }, 'Count'), ` ${shown} requests`)
}

createRoot(document.getElementById('root')).render(h(AllowedProvider, { checker, subject: ann, consistency }, h(Page)))
