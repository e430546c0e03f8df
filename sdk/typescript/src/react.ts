/** A React hook that shows and hides what a user may do. The server has to check all the same. */

import { createContext, createElement, useCallback, useContext, useEffect, useMemo, useState, type ReactNode } from 'react'

import { Batcher } from './batcher.js'
import type { BatchChecker, Checker } from './client.js'
import type { Consistency } from './consistency.js'
import { hasCode } from './errors.js'
import type { ResourceRef, Subject } from './types.js'

interface Asked {
  checker: Checker
  subject: Subject | undefined
  consistency: Consistency | undefined
}

const AskedContext = createContext<Asked | undefined>(undefined)

/** What {@link AllowedProvider} takes. */
export interface AllowedProviderProps {
  /** Answers the checks of the components below: those of one moment come as one batch. Keep it between renderings. */
  checker: BatchChecker
  /** The user who signed in; undefined: nothing is allowed. */
  subject: Subject | undefined
  /** Lets checks reflect the writes that it was used for. */
  consistency?: Consistency
  children?: ReactNode
}

/** Says who asks, and who answers, for {@link useAllowed} in the components below. */
export function AllowedProvider({ checker, subject, consistency, children }: AllowedProviderProps): ReactNode {
  const batcher = useMemo(() => new Batcher(checker), [checker])
  const value = useMemo(() => ({ checker: batcher, subject, consistency }), [batcher, subject, consistency])
  return createElement(AskedContext, { value }, children)
}

/** The answer to a check. Until there is one, and after an error, nothing is allowed. */
export interface Allowed {
  allowed: boolean
  /** There is no answer yet. */
  pending: boolean
  /** Why there is no answer. */
  error: unknown
  /** Asks again, such as after a write. */
  recheck: () => void
}

/** Reports whether the user may perform an action on a resource. */
export function useAllowed(action: string, resource: ResourceRef): Allowed {
  const asked = useContext(AskedContext)
  if (!asked) throw new Error('useAllowed needs an AllowedProvider around the component')
  const { checker, subject, consistency } = asked
  const [round, setRound] = useState(0)
  const question = subject && JSON.stringify([subject.type, subject.id, subject.relation, action, resource.type, resource.external_id])
  const [answer, setAnswer] = useState<{ to: unknown; checker?: Checker; allowed: boolean; error?: unknown }>({ to: undefined, allowed: false })

  useEffect(() => {
    if (!subject) return
    const left = new AbortController()
    const options = { signal: left.signal, ...(consistency && { consistency }) }
    checker.allowed(subject, action, resource, options).then(
      (allowed) => left.signal.aborted || setAnswer({ to: question, checker, allowed }),
      (error: unknown) => {
        if (left.signal.aborted) return
        setAnswer({ to: question, checker, allowed: false, error: hasCode(error, 'resource_not_found') ? undefined : error })
      },
    )
    return () => left.abort()
    // The question names the subject, the action and the resource by value.
  }, [checker, consistency, question, round])

  // An answer to another question, or of another checker, is none.
  const current = answer.to === question && answer.checker === checker
  return {
    allowed: current && answer.allowed,
    pending: question !== undefined && !current,
    error: current ? answer.error : undefined,
    recheck: useCallback(() => setRound((n) => n + 1), []),
  }
}
