/**
 * The texts by which people name resources, subjects and relations. They are for names in the source
 * and on command lines. Where an ID comes from elsewhere, build the object instead: in `user:${id}`, an
 * ID such as `x#member` would name other subjects.
 */

import type { ResourceRef, Subject, Tuple } from './types.js'

/** Parses `type:external_id`, such as `document:q3`. The ID may contain colons. */
export function resource(text: string): ResourceRef {
  const colon = text.indexOf(':')
  if (colon < 1 || colon === text.length - 1) {
    throw new TypeError(`"${text}" is not a resource: type:id, such as document:q3`)
  }
  return { type: text.slice(0, colon), external_id: text.slice(colon + 1) }
}

/**
 * Parses `type:id`, `type:*` or `type:id#relation`, such as `group:eng#member`. The text after the last
 * `#` is a relation if it can be the name of one.
 */
export function subject(text: string): Subject {
  const parts = /^([^:]+):(.+?)(?:#([a-z][a-z0-9_]{0,62}))?$/s.exec(text)
  if (parts === null) {
    throw new TypeError(`"${text}" is not a subject: type:id or type:id#relation, such as user:ann or group:eng#member`)
  }
  const [, type = '', id = '', relation] = parts
  return relation === undefined ? { type, id } : { type, id, relation }
}

/** Parses `resource#relation@subject`, such as `document:q3#viewer@user:ann`. */
export function tuple(text: string): Tuple {
  const parts = /^(.+?)#([a-z][a-z0-9_]{0,62})@(.+)$/s.exec(text)
  if (parts === null) {
    throw new TypeError(`"${text}" is not a relation: resource#relation@subject, such as document:q3#viewer@user:ann`)
  }
  const [, object = '', relation = '', holder = ''] = parts
  return { resource: resource(object), relation, subject: subject(holder) }
}
