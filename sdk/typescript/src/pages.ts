import type { Answer } from './call.js'

/** The maximum page size of the API. */
export const pageSize = 250

/** Iterates over the items of all pages. A page is read when the one before it has been used up. */
export async function* pages<T>(read: (cursor: string | undefined) => Promise<Answer<T[]>>): AsyncGenerator<T, void, undefined> {
  let cursor: string | undefined
  do {
    const { data, meta } = await read(cursor)
    yield* data
    cursor = meta.next_cursor ?? undefined
  } while (cursor !== undefined)
}
