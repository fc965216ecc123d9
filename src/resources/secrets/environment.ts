import { MAX_VARIABLES } from '../../contract/schema.ts'
import { badRequest } from '../../errors.ts'

/**
 * Largest size of all variables together, in bytes. Linux limits arguments and environment to a quarter of the stack.
 * @bound system
 */
const ENVIRONMENT_LIMIT = 1024 * 1024

/**
 * Largest number of lines in all values, more than any program has. Each adds to the cost of masking every log.
 * @bound client
 */
const MAX_LINES = 10_000

/**
 * Checks that a process can receive the variables together. The schemas of requests have checked their names, and how many
 * one request has; those that are set already come to them.
 *
 * @param field the field of the body that contains them
 * @throws BerthError 400, without any value
 */
export function checkEnvironment(field: string, variables: Readonly<Record<string, string | null>>): void {
  const count = Object.keys(variables).length
  if (count > MAX_VARIABLES) {
    throw badRequest(`"${field}" in the body: expected at most ${MAX_VARIABLES} in all, got ${count}.`)
  }
  const lines = Object.values(variables).reduce(
    (sum, value) => sum + (value?.split(/\r\n|[\r\n]/).length ?? 0),
    0,
  )
  if (lines > MAX_LINES) {
    throw badRequest(
      `"${field}" in the body: expected values of at most ${MAX_LINES} lines in all, got ${lines}. Put a longer text into a file.`,
    )
  }
  const bytes = Buffer.byteLength(Object.entries(variables).flat().join('=\0'))
  if (bytes > ENVIRONMENT_LIMIT) {
    throw badRequest(
      `"${field}" in the body: expected at most ${ENVIRONMENT_LIMIT} bytes in all, got ${bytes}.`,
    )
  }
}
