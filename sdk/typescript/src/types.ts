import type { components } from './api.gen.js'

type Schemas = components['schemas']

/** A subject: an object, everyone of a type (id `*`), or the holders of a relation to an object. */
export type Subject = Schemas['Subject']

/** The name of a resource. */
export type ResourceRef = Schemas['ResourceRef']

/** A registered resource. */
export type Resource = Schemas['Resource']

/** A resource to register. Without attributes, it keeps those that it has. */
export type ResourceInput = Schemas['ResourceInput']

/** A relation of a subject to a resource, possibly with an expiry and a condition. */
export type Tuple = Omit<Schemas['BulkOperation'], 'op'>

/** A relation that was read. */
export type RelationRecord = Schemas['RelationRecord']

/** An operation of a bulk write. */
export type Operation = Schemas['BulkOperation']

/** The effect of an operation. */
export type OperationResult = Schemas['BulkResult']

/** What has to be true for a bulk write, and what it does about relations that exist or are missing. */
export type WriteConditions = Omit<Schemas['BulkInput'], 'operations'>

/** Selects relations. Absent members select all values. A type of resources or subjects is required. */
export interface RelationFilter {
  resource_type?: string
  external_id?: string
  relation?: string
  subject_type?: string
  subject_id?: string
  subject_relation?: string
}

/** A check: may a subject do something to a resource? */
export type Question = Schemas['CheckInput']

/** The answer to a check. */
export type Decision = Schemas['CheckDecision'] & {
  /** Names the state that the check saw. */
  consistencyToken: string
}

/** Checks that are answered from one state. */
export type Batch = Schemas['CheckBatchInput']

/** A check of a batch, with a subject of its own. */
export type BatchCheck = Batch['checks'][number]

/** The answer to a check of a batch. With an `error`, the check has no answer. */
export type BatchDecision = Schemas['CheckBatchAnswer']['data'][number]

/** The answers to a batch, in its order. */
export interface BatchAnswer {
  decisions: BatchDecision[]
  /** Names the state that all answers are from. */
  consistencyToken: string
}

/** Asks for the resources that a subject is allowed. */
export type AllowedResourcesInput = Omit<Schemas['ListResourcesInput'], 'cursor' | 'limit'>

/** A resource of such a list. */
export type AllowedResource = Schemas['AllowedResource']

/** Asks for the subjects that are allowed an action on a resource. */
export type AllowedSubjectsInput = Omit<Schemas['ListSubjectsInput'], 'cursor' | 'limit'>

/** A subject of such a list. If it is excluded, it is not allowed, although everyone else is. */
export type AllowedSubject = Schemas['AllowedSubject']

/** Asks for the actions that a subject is allowed on a resource. */
export type AllowedActionsInput = Schemas['ListActionsInput']

/** Asks for the proofs of a check. */
export type ProofsInput = Omit<Schemas['ListProofsInput'], 'cursor' | 'limit'>

/** One proof of a check. */
export type Proof = Schemas['Proof']

/** Asks for the tree of rewrites and relations behind an action. */
export type ExpandInput = Schemas['ExpandInput']

/** A node of such a tree. */
export type ExpandNode = Schemas['ExpandNode']

/** An event of a watch. */
export type WatchEvent = Schemas['WatchEvent']

/** What a watch follows: all changes or, with the three other members, the decisions that they change. */
export interface WatchInput {
  /** The consistency token of the last event seen; absent: from now on. */
  after?: string
  type?: string
  action?: string
  subject_type?: string
}
