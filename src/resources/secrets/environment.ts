import { badRequest } from '../../errors.ts'

/** Bytes of all variables together; Linux gives arguments and environment a quarter of the stack. */
const ENVIRONMENT_LIMIT = 1024 * 1024

/** More than any program has; each costs every log that it must not show up in. */
const MOST_VARIABLES = 1_000

/**
 * Refuses more variables than a process can be given. Their names have been checked before.
 *
 * @param field the field of the body that they stand in
 * @throws BerthError 400, which shows no value
 */
export function checkEnvironment(field: string, variables: Readonly<Record<string, string | null>>): void {
  const count = Object.keys(variables).length
  if (count > MOST_VARIABLES) {
    throw badRequest(`"${field}" in the body: expected at most ${MOST_VARIABLES} in all, got ${count}.`)
  }
  const bytes = Buffer.byteLength(Object.entries(variables).flat().join('=\0'))
  if (bytes > ENVIRONMENT_LIMIT) {
    throw badRequest(
      `"${field}" in the body: expected at most ${ENVIRONMENT_LIMIT} bytes in all, got ${bytes}.`,
    )
  }
}
