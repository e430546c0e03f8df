/**
 * Client of the Stonetown API: checks, lists, relations, resources and watches.
 *
 * @packageDocumentation
 */

export type { components, operations, paths } from './api.gen.js'
export { Batcher, maxBatch } from './batcher.js'
export type { CallOptions } from './call.js'
export { Client, type BatchChecker, type Checker, type Config } from './client.js'
export type { ErrorCode } from './codes.gen.js'
export { Consistency } from './consistency.js'
export { ConnectionError, hasCode, StonetownError } from './errors.js'
export { consistencyOf, type GuardOptions, type ResourceOf } from './guard.js'
export { resource, subject, tuple } from './names.js'
export type * from './types.js'
