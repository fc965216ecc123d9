import type { Project } from '../../resources/projects/model.ts'
import type { Client } from '../client.ts'
import { count, paint, printable } from '../output.ts'
import type { OutputStream } from '../process-context.ts'

/** Matches host names of this machine. */
const LOCAL = /^(?:127(?:\.\d+){3}|\[::1\]|(?:.*\.)?localhost)$/

/**
 * Returns the addresses of a public project for a person: `http://127.0.0.1:4800/ and http://shop.localhost:4747/`. Apps on
 * other servers reach it at the second one. It is missing if berth is not on this machine.
 */
export function projectAddresses({ baseUrl }: Pick<Client, 'baseUrl'>, { url, slug }: Project): string {
  const own = new URL(baseUrl)
  if (!LOCAL.test(own.hostname)) return String(url)
  own.hostname = `${slug}.localhost`
  return `${url} and ${own.origin}/`
}

/** Reports whether a project is a worker, which has no URL. */
export const isWorker = ({ app, workers }: Project): boolean =>
  workers.length > 0 && app?.start === null && app.serves === null

/** Returns the commands that continue a bring-up that waits for variables. */
export async function missingVariablesText(client: Client, { id, slug }: Project): Promise<string> {
  const { variables } = await client.call('projectSecrets.list', { params: { projectId: id } })
  const missing = variables.filter((variable) => variable.missing)
  const names = missing.map(({ name }) => name)
  const described = missing.flatMap(({ name, description }) =>
    description === null ? [] : [`  ${name}: ${printable(description)}\n`],
  )
  return `${slug} waits for the variables that its code asks for: ${names.join(', ')}.
${described.join('')}  Set them:           berth secrets set ${names.join(' ')} --project ${id}
  Go on without them: berth projects init ${id} --proceed
`
}

/** What the option `--strict` does. */
export const STRICT = 'exit with 1 if berth warns of its pages; the app stays up'

/** How warnings are reported. */
interface WarningOptions {
  /** Whether they have been shown, as lines of the log. */
  readonly isShown: boolean
  readonly strict?: true | undefined
}

/**
 * Prints what is wrong with the pages of an app that is up.
 *
 * @returns the exit code: 1 if there are any and they count
 */
export async function reportWarnings(
  stderr: OutputStream,
  warnings: readonly string[],
  { isShown, strict }: WarningOptions,
): Promise<number> {
  if (!isShown)
    for (const warning of warnings)
      await stderr.write(`${paint(stderr, 'yellow', 'Warning:')} ${printable(warning)}\n`)
  if (strict === undefined || warnings.length === 0) return 0
  await stderr.write(`It is up, with ${count(warnings.length, 'warning')}, so --strict fails.\n`)
  return 1
}
