import { tokenOf } from '../../components/command-lines.tsx'
import type { WholeRequest } from '../../store/store.ts'

/** Where the program that the code is copied into has its variables. */
const VARIABLES = ['process', 'env'].join('.')

/** Returns the call of `fetch` that sends a request. The key stays a variable. */
export function fetchCode({ method, path, request }: WholeRequest): string {
  const body = request === null ? undefined : JSON.stringify(request.body, null, 2)
  const headers = [
    `authorization: \`Bearer \${${VARIABLES}.${tokenOf(path)}}\``,
    ...(body === undefined ? [] : ["'content-type': 'application/json'"]),
  ]
  const address = `\`\${${VARIABLES}.BERTH_BASE_URL}${path.replace(/[`\\$]/g, '\\$&')}\``
  return [
    `const response = await fetch(${address}, {`,
    `  method: '${method}',`,
    `  headers: { ${headers.join(', ')} },`,
    ...(body === undefined ? [] : [`  body: JSON.stringify(${body.replaceAll('\n', '\n  ')}),`]),
    '})',
  ].join('\n')
}

/** Returns a test, for bun:test or Vitest, that sends a request and expects the same response. */
export function testCode(entry: WholeRequest): string {
  const { method, path, status, operation, response } = entry
  const name = `${operation ?? `${method} ${path}`} responds with ${status}`
  const expected = response === null ? null : matcherOf(response.body, status >= 400)
  return [
    "import { expect, test } from 'bun:test' // or 'vitest'",
    '',
    `test(${JSON.stringify(name)}, async () => {`,
    ...fetchCode(entry)
      .split('\n')
      .map((line) => `  ${line}`),
    `  expect(response.status).toBe(${status})`,
    ...(expected === null ? [] : [`  expect(await response.json()).toMatchObject(${expected})`]),
    '})',
    '',
  ].join('\n')
}

/**
 * Returns what a response has to match: of a failure the code, else the type of each field, since ids and times are others
 * each time.
 */
function matcherOf(body: unknown, isFailure: boolean): string | null {
  if (typeof body !== 'object' || body === null || Array.isArray(body)) return null
  const fields = Object.entries(body).flatMap(([name, value]) => {
    const kind = isFailure && name === 'error' ? JSON.stringify(value) : typeMatcher(value)
    return kind === null ? [] : [`${JSON.stringify(name)}: ${kind}`]
  })
  return fields.length === 0 ? null : `{ ${fields.join(', ')} }`
}

function typeMatcher(value: unknown): string | null {
  switch (typeof value) {
    case 'string':
      return 'expect.any(String)'
    case 'number':
      return 'expect.any(Number)'
    case 'boolean':
      return String(value)
    default:
      return Array.isArray(value) ? 'expect.any(Array)' : null
  }
}
