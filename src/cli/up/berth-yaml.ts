import { existsSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import type { FixturesRequest } from '../../testing/seed/to-request.ts'
import { CommandError } from '../errors.ts'
import type { ProcessContext } from '../process-context.ts'

/** The names of a project's own file, the first that is there. */
const NAMES = ['berth.yaml', 'berth.yml'] as const

/** The file that says what `berth up` brings up. */
export interface ProjectFile {
  /** Absolute. */
  readonly path: string
  /** The directory that contains it. */
  readonly root: string
  /** Its content, for the instance. */
  readonly request: FixturesRequest
  /** Names of its servers. */
  readonly servers: readonly string[]
  /** Names of its projects, each with the directory of its code; null for code from elsewhere. */
  readonly projects: ReadonlyMap<string, string | null>
}

/**
 * Finds and reads the file: the one that is named, else the one of the working directory or of the nearest parent that
 * has one.
 *
 * @throws CommandError if there is none; StartupError for its mistakes, with line, column and reason
 */
export async function readProjectFile(
  named: string | undefined,
  context: ProcessContext,
): Promise<ProjectFile> {
  const path = named === undefined ? findProjectFile(context.cwd) : resolve(context.cwd, named)
  const [{ readFixtures }, { toRequest }] = await Promise.all([
    import('../../testing/seed/read.ts'),
    import('../../testing/seed/to-request.ts'),
  ])
  const fixtures = readFixtures([path], context.env, { what: 'The file', remedy: (it) => `Correct ${it}.` })
  const root = dirname(path)
  return {
    path,
    root,
    request: toRequest(fixtures),
    servers: fixtures.servers.map(({ name }) => name),
    projects: new Map(
      fixtures.projects.map((one) => {
        const { directory } = one.value
        const code = directory === undefined ? null : resolve(root, directory)
        if (code !== null && !existsSync(code)) throw one.error(`there is no directory ${code}.`, 'directory')
        return [one.name, code]
      }),
    ),
  }
}

function findProjectFile(cwd: string): string {
  for (let directory = resolve(cwd); ; directory = dirname(directory)) {
    const found = NAMES.map((name) => join(directory, name)).find(existsSync)
    if (found !== undefined) return found
    if (directory === dirname(directory)) break
  }
  throw new CommandError(
    `There is no ${NAMES[0]} in ${cwd} or above it. Write one ("berth guide up" shows how), or name one with --file.`,
  )
}
