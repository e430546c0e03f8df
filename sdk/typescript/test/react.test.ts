// @vitest-environment happy-dom

import { act, createElement } from 'react'
import { createRoot } from 'react-dom/client'
import { expect, test } from 'vitest'

import { AllowedProvider, useAllowed, type Allowed } from '../src/react.js'
import { StonetownError, type Batch, type BatchAnswer, type BatchChecker, type Subject } from '../src/index.js'
import { ann, bob } from './server.js'

Object.assign(globalThis, { IS_REACT_ACT_ENVIRONMENT: true })

/** Answers when it is told to. */
class Answering implements BatchChecker {
  readonly asked: { batch: Batch; answer: (decisions: BatchAnswer['decisions']) => Promise<void>; fail: (error: Error) => Promise<void> }[] = []

  checkBatch(batch: Batch): Promise<BatchAnswer> {
    return new Promise((resolve, reject) => {
      this.asked.push({
        batch,
        answer: (decisions) => act(async () => resolve({ decisions, consistencyToken: 't' })),
        fail: (error) => act(async () => reject(error)),
      })
    })
  }
}

/** Renders a component for each document, and returns what the hook has returned last for it. */
async function render(checker: BatchChecker) {
  const shown: Record<string, Allowed> = {}
  function Row({ id }: { id: string }) {
    shown[id] = useAllowed('view', { type: 'document', external_id: id })
    return null
  }
  const root = createRoot(document.createElement('div'))
  const update = (subject: Subject | undefined, ids: string[], by = checker) =>
    act(async () => root.render(createElement(AllowedProvider, { checker: by, subject }, ids.map((id, key) => createElement(Row, { id, key })))))
  return { shown, update, leave: () => act(async () => root.unmount()) }
}

test('the checks of all components are one request', async () => {
  const checker = new Answering()
  const { shown, update } = await render(checker)
  await update(ann, ['q1', 'q2', 'q3'])
  expect(shown.q1).toMatchObject({ allowed: false, pending: true })
  expect(checker.asked.map(({ batch }) => batch.checks.map(({ subject, action, resource }) => [subject, action, resource.external_id]))).toEqual([
    [
      [ann, 'view', 'q1'],
      [ann, 'view', 'q2'],
      [ann, 'view', 'q3'],
    ],
  ])
  await checker.asked[0]?.answer([{ allowed: true }, { allowed: false }, { allowed: false, error: 'resource_not_found' }])
  expect(shown.q1).toMatchObject({ allowed: true, pending: false, error: undefined })
  expect(shown.q2).toMatchObject({ allowed: false, pending: false, error: undefined })
  expect(shown.q3).toMatchObject({ allowed: false, pending: false, error: undefined })
  await update(ann, ['q1', 'q2', 'q3']) // new objects, the same questions
  expect(checker.asked).toHaveLength(1)
})

test('the answer to another question is none', async () => {
  const checker = new Answering()
  const { shown, update } = await render(checker)
  await update(ann, ['q1'])
  await checker.asked[0]?.answer([{ allowed: true }])
  expect(shown.q1?.allowed).toBe(true)
  await update(bob, ['q1'])
  expect(shown.q1).toMatchObject({ allowed: false, pending: true })
  await checker.asked[1]?.answer([{ allowed: true }])
  await update(undefined, ['q1'])
  expect(shown.q1).toMatchObject({ allowed: false, pending: false })
  await update(bob, ['q1'], new Answering())
  expect(shown.q1).toMatchObject({ allowed: false, pending: true })
})

test('a late answer to an earlier question is not shown', async () => {
  const checker = new Answering()
  const { shown, update } = await render(checker)
  await update(ann, ['q1'])
  await update(bob, ['q1'])
  await checker.asked[0]?.answer([{ allowed: true }])
  expect(shown.q1).toMatchObject({ allowed: false, pending: true })
  await checker.asked[1]?.answer([{ allowed: true }])
  expect(shown.q1).toMatchObject({ allowed: true, pending: false })
})

test('nothing is allowed after an error, and it can be asked again', async () => {
  const checker = new Answering()
  const { shown, update, leave } = await render(checker)
  await update(ann, ['q1'])
  await checker.asked[0]?.fail(new StonetownError(503, 'service_unavailable', 'busy'))
  expect(shown.q1).toMatchObject({ allowed: false, pending: false, error: { code: 'service_unavailable' } })
  await act(async () => shown.q1?.recheck())
  await checker.asked[1]?.answer([{ allowed: true }])
  expect(shown.q1).toMatchObject({ allowed: true, error: undefined })
  await leave()
})

test('the hook needs a provider', async () => {
  function Row() {
    useAllowed('view', { type: 'document', external_id: 'q1' })
    return null
  }
  const root = createRoot(document.createElement('div'), { onUncaughtError: () => {} })
  await expect(act(async () => root.render(createElement(Row)))).rejects.toThrow('AllowedProvider')
})
