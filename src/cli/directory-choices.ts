import { existsSync, mkdirSync, readFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { isObject } from '../runtime/is-object.ts'
import { writePrivate } from '../storage/files.ts'
import { CommandError } from './errors.ts'
import { printable } from './output.ts'
import type { ProcessContext } from './process-context.ts'
import { userDirectory } from './user-directory.ts'

/** All choices of a file: ids by the instance's address, by directory. */
type Choices = Record<string, Record<string, string>>

/** A choice that holds in a directory and below it. */
interface DirectoryChoice {
  /** Of the server or project that was chosen. */
  readonly id: string
  /** Where it was made. */
  readonly directory: string
}

type Context = Pick<ProcessContext, 'env' | 'cwd'>

/** What directories of this machine stand for on instances, kept in a file of the user's configuration. */
class DirectoryChoices {
  /**
   * @param file name in the directory `berth` of the user's configuration
   * @param remedy what to do once a damaged file is removed, as the end of a sentence
   */
  constructor(
    private readonly file: string,
    private readonly remedy: string,
  ) {}

  /**
   * Returns what is meant in the working directory, by the nearest choice; null if there is none.
   *
   * @param isThere reports whether the instance has something of an id. Then a choice counts too that was made when the
   *   instance had another address, since no two instances make the same id.
   */
  find(
    { env, cwd }: Context,
    baseUrl: string,
    isThere: (id: string) => boolean = () => false,
  ): DirectoryChoice | null {
    const path = this.#path(env)
    if (path === null || !existsSync(path)) return null
    const all = this.#read(path)
    for (let directory = resolve(cwd); ; directory = dirname(directory)) {
      const choices = all[directory] ?? {}
      const chosen = choices[baseUrl]
      const id =
        chosen !== undefined && isThere(chosen) ? chosen : (Object.values(choices).find(isThere) ?? chosen)
      if (id !== undefined) return { id, directory }
      if (directory === dirname(directory)) return null
    }
  }

  /**
   * Keeps a choice for the working directory, in place of an earlier one.
   *
   * @param id null takes back the choice that holds there, wherever it was made
   * @param isThere as for `find`
   * @returns the choice that held before; null for none
   * @throws CommandError if it cannot be kept
   */
  keep(
    context: Context,
    baseUrl: string,
    id: string | null,
    isThere?: (id: string) => boolean,
  ): DirectoryChoice | null {
    const path = this.#path(context.env)
    if (path === null) {
      throw new CommandError(
        'There is no directory to keep the choice in: this user has no home. Name one with XDG_CONFIG_HOME.',
      )
    }
    const before = this.find(context, baseUrl, isThere)
    if (before === null && id === null) return null
    const all = existsSync(path) ? this.#read(path) : {}
    const directory = id === null && before ? before.directory : resolve(context.cwd)
    const meant = id ?? before?.id
    // Of the same instance, when it had another address.
    const choices = Object.fromEntries(
      Object.entries(all[directory] ?? {}).filter(([, one]) => one !== meant),
    )
    if (id === null) delete choices[baseUrl]
    else choices[baseUrl] = id
    const changed: Choices = { ...all, [directory]: choices }
    if (Object.keys(choices).length === 0) delete changed[directory]
    try {
      mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
      writePrivate(path, `${JSON.stringify(changed, null, 2)}\n`)
    } catch (error) {
      const cause = error instanceof Error ? error.message : String(error)
      throw new CommandError(`${path} cannot be written: ${cause}. Fix its permissions.`)
    }
    return before
  }

  /** Takes back the choice that holds in the working directory, if it is of this id. Reports whether it was. */
  forget(context: Context, baseUrl: string, id: string): boolean {
    try {
      const isMeant = (one: string): boolean => one === id
      if (this.find(context, baseUrl, isMeant)?.id !== id) return false
      this.keep(context, baseUrl, null, isMeant)
      return true
    } catch (error) {
      // A damaged file is reported where the choice is needed.
      if (error instanceof CommandError) return false
      throw error
    }
  }

  #path(env: Context['env']): string | null {
    const directory = userDirectory(env, 'XDG_CONFIG_HOME', '.config')
    return directory === null ? null : join(directory, 'berth', this.file)
  }

  /** Reads the choices. Throws CommandError for a damaged file. */
  #read(path: string): Choices {
    try {
      const parsed: unknown = JSON.parse(readFileSync(path, 'utf8'))
      if (isChoices(parsed)) return parsed
    } catch {
      // Reported below.
    }
    throw new CommandError(`${path} is damaged or may not be read. Remove it, and ${this.remedy}.`)
  }
}

/** The servers that `berth use` has chosen. */
export const USED_SERVERS = new DirectoryChoices('use.json', 'choose again with "berth use"')

/** Returns what to do about a chosen server that is gone. */
export const deletedChoice = ({ id, directory }: DirectoryChoice): string =>
  `${id}, which "berth use" has chosen for ${printable(directory)}, is not there any more. Choose another with "berth use SERVER", or none with "berth use --none".`

/** The projects that directories were sent to. */
export const SENT_PROJECTS = new DirectoryChoices(
  'projects.json',
  'name the project again with "berth projects push --project PROJECT"',
)

const isChoices = (value: unknown): value is Choices =>
  isObject(value) &&
  Object.values(value).every(
    (choices) => isObject(choices) && Object.values(choices).every((id) => typeof id === 'string'),
  )
