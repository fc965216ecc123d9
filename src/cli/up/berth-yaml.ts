import { existsSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import type { FixtureNames, FixturesRequest } from '../../testing/testing.ts'
import { CommandError } from '../errors.ts'
import type { ProcessContext } from '../process-context.ts'

/** The names of a project's own file, the first that is there. */
const NAMES = ['berth.yaml', 'berth.yml'] as const

/** What taking things down needs of the file: where it is, and the names in it. */
export interface ProjectFileNames extends FixtureNames {
  /** Absolute. */
  readonly path: string
  /** The directory that contains it. */
  readonly root: string
}

/** The file that says what `berth up` brings up. */
export interface ProjectFile extends ProjectFileNames {
  /** Its content, for the instance. */
  readonly request: FixturesRequest
  /** Its projects by name. */
  readonly projects: ReadonlyMap<string, DeclaredProject>
}

/** A project of the file. */
export interface DeclaredProject {
  /** The directory of its code, absolute; null for code from elsewhere. */
  readonly directory: string | null
  /** The app's own directory, relative to the code; undefined if the file names none. */
  readonly appDirectory: string | undefined
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
  const path = findProjectFile(named, context.cwd)
  const { readFixtures, toRequest } = await import('../../testing/seed/read.ts')
  const fixtures = readFixtures([path], context.env)
  const root = dirname(path)
  const namesOf = (entries: readonly { readonly name: string }[]) => entries.map(({ name }) => name)
  return {
    path,
    root,
    request: toRequest(fixtures),
    servers: namesOf(fixtures.servers),
    keys: namesOf(fixtures.keys),
    webhooks: namesOf(fixtures.webhooks),
    projects: new Map(
      fixtures.projects.map((one) => {
        const { directory, app_directory: appDirectory } = one.value
        const code = directory === undefined ? null : resolve(root, directory)
        if (code !== null && !existsSync(code)) throw one.error(`there is no directory ${code}.`, 'directory')
        return [one.name, { directory: code, appDirectory }]
      }),
    ),
  }
}

/**
 * Finds the file as `readProjectFile` does, and reads the names in it. What the file refers to need not exist: the
 * values of variables, files, directories.
 *
 * @throws CommandError if there is none; StartupError for mistakes in its shape, with line, column and reason
 */
export async function readProjectFileNames(
  named: string | undefined,
  context: ProcessContext,
): Promise<ProjectFileNames> {
  const path = findProjectFile(named, context.cwd)
  const { readFixtureNames } = await import('../../testing/seed/read.ts')
  return { path, root: dirname(path), ...readFixtureNames(path) }
}

function findProjectFile(named: string | undefined, cwd: string): string {
  if (named !== undefined) {
    const path = resolve(cwd, named)
    if (!existsSync(path))
      throw new CommandError(`There is no file ${path}. Correct --file, or leave it out.`)
    return path
  }
  for (let directory = resolve(cwd); ; directory = dirname(directory)) {
    const found = NAMES.map((name) => join(directory, name)).find(existsSync)
    if (found !== undefined) return found
    if (directory === dirname(directory)) break
  }
  throw new CommandError(
    `There is no ${NAMES[0]} in ${cwd} or above it. Write one ("berth guide up" shows how), or name one with --file.`,
  )
}
