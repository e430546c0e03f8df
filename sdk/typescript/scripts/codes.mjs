// Writes src/codes.gen.ts: the error codes of the OpenAPI document, which openapi-typescript does not
// read.

import { readFile, writeFile } from 'node:fs/promises'

const [, , document, output] = process.argv
const lists = (await readFile(document, 'utf8')).matchAll(/(?:x-error-codes|"[45]\d\d"): \[([A-Za-z_, ]+)\]/g)
const codes = [...new Set([...lists].flatMap(([, list]) => list.split(', ')))].sort()
await writeFile(
  output,
  `// Code generated from openapi.yaml by codes.mjs. DO NOT EDIT.

/** A code of the API's errors. */
export type ErrorCode =
${codes.map((code) => `  | '${code}'`).join('\n')}
`,
)
