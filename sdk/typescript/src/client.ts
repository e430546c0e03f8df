import createClient from 'openapi-fetch'

import type { paths } from './api.gen.js'
import { call, under, type CallOptions } from './call.js'
import { pages, pageSize } from './pages.js'
import { basic, ClientCredentials, GivenTokens, type TokenSource } from './tokens.js'
import { Transport } from './transport.js'
import type * as wire from './types.js'
import { watch } from './watch.js'

/** The address of the server and the credentials. Times are in milliseconds. */
export interface Config {
  /** The URL of the tenant, such as https://acme.example.com. */
  baseUrl: string

  /** The credentials of an application of the tenant, for servers. */
  clientId?: string
  clientSecret?: string

  /** The scopes of the access tokens. Default: all that the application may have. */
  scopes?: readonly string[]

  /**
   * Returns access tokens, in place of credentials: in a browser, that of the user who signed in.
   * `refused` is the token that the server refused last.
   */
  accessToken?: (refused?: string) => string | Promise<string>

  /** Sends requests. Default: fetch. */
  fetch?: typeof fetch

  /** How long after its start a call is repeated while the server is busy or unreachable. Default: 15,000. */
  patience?: number

  /** How long one attempt may take. Default: 60,000. */
  attemptTimeout?: number

  /** Is called with each warning of the server, once for each text. */
  onWarning?: (text: string) => void
}

/** Answers checks: a {@link Client}, a {@link Batcher} or a function of your own. */
export interface Checker {
  /** Reports whether a subject may perform an action on a resource. */
  allowed(subject: wire.Subject, action: string, resource: wire.ResourceRef, options?: CallOptions): Promise<boolean>
}

/** Answers batches: a {@link Client}, or a function that asks your service. */
export interface BatchChecker {
  checkBatch(batch: wire.Batch, options?: CallOptions): Promise<wire.BatchAnswer>
}

/**
 * Calls the API. Values have the names that the API has, options those of TypeScript.
 *
 * It gets its own access tokens, and sends a request again if the server was too busy for it or the
 * network lost it: a write only with an Idempotency-Key, so that no write is executed twice. Errors of
 * the server are {@link StonetownError}.
 */
export class Client implements Checker, BatchChecker {
  /**
   * All operations of the API, typed, with tokens and repetitions as in the methods of the client. It
   * returns errors instead of throwing them (see openapi-fetch).
   */
  readonly api: ReturnType<typeof createClient<paths>>

  readonly #patience: number

  /** Sends no request. */
  constructor(config: Config) {
    const baseUrl = checkedBase(config.baseUrl)
    const { clientId, clientSecret, accessToken, patience = 15_000, attemptTimeout = 60_000 } = config
    if (accessToken ? (clientId ?? clientSecret) !== undefined : !clientId || !clientSecret) {
      throw new TypeError('either a client id with its secret or a function for access tokens is required')
    }
    const tokens: TokenSource = accessToken
      ? new GivenTokens(accessToken)
      : new ClientCredentials(() => {
          const form = new URLSearchParams({ grant_type: 'client_credentials' })
          if (config.scopes) form.set('scope', config.scopes.join(' '))
          return transport.token({ Authorization: basic(clientId ?? '', clientSecret ?? '') }, form)
        })
    const transport: Transport = new Transport({
      baseUrl,
      tokens,
      fetch: config.fetch ?? ((...args) => globalThis.fetch(...args)),
      patience,
      attemptTimeout,
      onWarning: config.onWarning,
    })
    this.#patience = patience
    this.api = createClient<paths>({ baseUrl, fetch: transport.fetch, pathSerializer })
  }

  /**
   * Sends a check. If the resource does not exist, it fails with the code `resource_not_found`. With
   * `debug`, the answer is explained.
   */
  async check(question: wire.Question, options: CallOptions = {}): Promise<wire.Decision> {
    const { body, begun } = under(options, question)
    const { data, meta } = await call(options, (signal) => this.api.POST('/api/v1/resources/check', { body, signal }), { begun })
    return { ...data, consistencyToken: meta.consistency_token ?? '' }
  }

  /** Reports whether a subject may perform an action on a resource. See {@link Batcher} for many such questions at a time. */
  async allowed(subject: wire.Subject, action: string, resource: wire.ResourceRef, options?: CallOptions): Promise<boolean> {
    return (await this.check({ subject, action, resource }, options)).allowed
  }

  /** Sends up to 1,000 checks, which are answered from one state. */
  async checkBatch(batch: wire.Batch, options: CallOptions = {}): Promise<wire.BatchAnswer> {
    const { body, begun } = under(options, batch)
    const { data, meta } = await call(options, (signal) => this.api.POST('/api/v1/resources/check-batch', { body, signal }), { begun })
    if (data.length !== batch.checks.length) throw new Error(`${data.length} decisions about ${batch.checks.length} checks`)
    return { decisions: data, consistencyToken: meta.consistency_token ?? '' }
  }

  /** Iterates over the resources that a subject is allowed. */
  allowedResources(input: wire.AllowedResourcesInput, options: CallOptions = {}): AsyncGenerator<wire.AllowedResource, void, undefined> {
    return pages((cursor) => {
      const body = { ...input, limit: pageSize, ...(cursor && { cursor }) }
      return call(options, (signal) => this.api.POST('/api/v1/resources/list-resources', { body, signal }))
    })
  }

  /** Counts the resources that a subject is allowed, up to a limit. `exact`: there are not more. */
  async countAllowedResources(
    input: wire.AllowedResourcesInput & { limit?: number },
    options: CallOptions = {},
  ): Promise<{ count: number; exact: boolean }> {
    return (await call(options, (signal) => this.api.POST('/api/v1/resources/list-resources/count', { body: input, signal }))).data
  }

  /** Iterates over the subjects that may perform an action on a resource. */
  allowedSubjects(input: wire.AllowedSubjectsInput, options: CallOptions = {}): AsyncGenerator<wire.AllowedSubject, void, undefined> {
    return pages((cursor) => {
      const body = { ...input, limit: pageSize, ...(cursor && { cursor }) }
      return call(options, (signal) => this.api.POST('/api/v1/resources/list-subjects', { body, signal }))
    })
  }

  /** Lists the actions that a subject may perform on a resource. */
  async allowedActions(input: wire.AllowedActionsInput, options: CallOptions = {}): Promise<string[]> {
    return (await call(options, (signal) => this.api.POST('/api/v1/resources/list-actions', { body: input, signal }))).data.actions
  }

  /** Iterates over the proofs of a check. */
  proofs(input: wire.ProofsInput, options: CallOptions = {}): AsyncGenerator<wire.Proof, void, undefined> {
    return pages((cursor) => {
      const body = { ...input, limit: pageSize, ...(cursor && { cursor }) }
      return call(options, (signal) => this.api.POST('/api/v1/resources/list-proofs', { body, signal }))
    })
  }

  /** Returns the tree of rewrites and relations behind an action. */
  async expand(input: wire.ExpandInput, options: CallOptions = {}): Promise<wire.ExpandNode> {
    return (await call(options, (signal) => this.api.POST('/api/v1/resources/expand', { body: input, signal }))).data
  }

  /** Writes a relation, and reports whether it is new. An existing one gets the given expiry and condition. */
  async createRelation({ resource, ...body }: wire.Tuple, options: CallOptions = {}): Promise<boolean> {
    const send = (signal: AbortSignal) =>
      this.api.POST('/api/v1/resources/{type}/{external_id}/relations', { params: { path: resource }, body, signal })
    return (await call(options, send, { wrote: true })).status === 201
  }

  /** Deletes a relation with any expiry and condition. It fails with `relation_not_found` if there is none. */
  async deleteRelation({ resource, relation, subject }: wire.Tuple, options: CallOptions = {}): Promise<void> {
    const send = (signal: AbortSignal) =>
      this.api.DELETE('/api/v1/resources/{type}/{external_id}/relations', {
        params: { path: resource },
        body: { relation, subject },
        signal,
      })
    await call(options, send, { wrote: true })
  }

  /** Applies up to 500 operations in order, all or none. To replace a relation, delete and create in one call. */
  async writeRelations(
    operations: wire.Operation[],
    conditions: wire.WriteConditions = {},
    options: CallOptions = {},
  ): Promise<wire.OperationResult[]> {
    const send = (signal: AbortSignal) =>
      this.api.POST('/api/v1/resources/relations/bulk', { body: { ...conditions, operations }, signal })
    return (await call(options, send, { wrote: true })).data.results
  }

  /** Iterates over the direct relations of a resource, all or those with a name. */
  relations(
    resource: wire.ResourceRef,
    relation?: string,
    options: CallOptions = {},
  ): AsyncGenerator<wire.RelationRecord, void, undefined> {
    return pages((cursor) => {
      const query = { limit: pageSize, ...(relation && { relation }), ...(cursor && { cursor }) }
      const params = { path: resource, query }
      return call(options, (signal) => this.api.GET('/api/v1/resources/{type}/{external_id}/relations', { params, signal }))
    })
  }

  /** Iterates over the direct relations that a filter selects. */
  findRelations(filter: wire.RelationFilter, options: CallOptions = {}): AsyncGenerator<wire.RelationRecord, void, undefined> {
    return pages((cursor) => {
      const query = { ...filter, limit: pageSize, ...(cursor && { cursor }) }
      return call(options, (signal) => this.api.GET('/api/v1/relations', { params: { query }, signal }))
    })
  }

  /** Deletes the direct relations that a filter selects, in as many requests as necessary, and returns their number. */
  async deleteRelations(filter: wire.RelationFilter, options: CallOptions = {}): Promise<number> {
    let deleted = 0
    for (let cursor: string | undefined; ; ) {
      const query = { ...filter, ...(cursor && { cursor }) }
      const { data, meta } = await call(options, (signal) => this.api.DELETE('/api/v1/relations', { params: { query }, signal }), { wrote: true })
      deleted += data.deleted
      if (!data.has_more) return deleted
      cursor = meta.next_cursor ?? undefined
    }
  }

  /** Registers a resource or replaces its attributes, and reports whether it is new. */
  async putResource(resource: wire.ResourceInput, options: CallOptions = {}): Promise<boolean> {
    return (await call(options, (signal) => this.api.POST('/api/v1/resources', { body: resource, signal }), { wrote: true })).status === 201
  }

  /** Reads a resource. */
  async getResource(resource: wire.ResourceRef, options: CallOptions = {}): Promise<wire.Resource> {
    const send = (signal: AbortSignal) => this.api.GET('/api/v1/resources/{type}/{external_id}', { params: { path: resource }, signal })
    return (await call(options, send)).data
  }

  /** Deletes a resource with its relations. */
  async deleteResource(resource: wire.ResourceRef, options: CallOptions = {}): Promise<void> {
    const send = (signal: AbortSignal) => this.api.DELETE('/api/v1/resources/{type}/{external_id}', { params: { path: resource }, signal })
    await call(options, send, { wrote: true })
  }

  /** Iterates over the resources of a type, newest first. */
  resources(type: string, options: CallOptions = {}): AsyncGenerator<wire.Resource, void, undefined> {
    return pages((cursor) => {
      const query = { type, limit: pageSize, ...(cursor && { cursor }) }
      return call(options, (signal) => this.api.GET('/api/v1/resources', { params: { query }, signal }))
    })
  }

  /**
   * Iterates over changes or, with a type, an action and a type of subjects, over the decisions that
   * changed. Each event, also a heartbeat, has the consistency token from which to go on later. A
   * connection that is lost is replaced, and no event is missed. It ends when the loop is left, or with
   * the error of `signal`.
   */
  watch(input: wire.WatchInput = {}, { signal }: Pick<CallOptions, 'signal'> = {}): AsyncGenerator<wire.WatchEvent, void, undefined> {
    const open = (query: wire.WatchInput, signal: AbortSignal) =>
      this.api.GET('/api/v1/resources/watch', { params: { query }, parseAs: 'stream', signal })
    return watch(open, input, this.#patience, signal)
  }
}

/** Returns the base URL without a final slash. The errors do not quote it, because it may have a password. */
function checkedBase(text: string): string {
  let url
  try {
    url = new URL(text)
  } catch {
    throw new TypeError("the server's URL is malformed")
  }
  if (url.username || url.password || url.search || url.hash) {
    throw new TypeError("the server's URL must not have user information, a query or a fragment")
  }
  if (url.protocol !== 'https:' && url.protocol !== 'http:') {
    throw new TypeError("the server's URL must begin with http:// or https://")
  }
  return url.href.replace(/\/+$/, '')
}

/** Puts each parameter into one segment of a path. Those that URLs resolve would lead elsewhere. */
function pathSerializer(path: string, params: Record<string, unknown>): string {
  return path.replace(/\{([^{}]+)\}/g, (_, name: string) => {
    const value = String(params[name])
    if (value === '.' || value === '..') {
      throw new TypeError(`a path cannot have the ID "${value}": use writeRelations, findRelations or deleteRelations`)
    }
    return encodeURIComponent(value)
  })
}
