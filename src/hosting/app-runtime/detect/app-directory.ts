import { type Workspace, WorkspaceError } from '../../../compute/workspace.ts'
import { messageOf } from '../../../runtime/error-info.ts'
import { parseToml, TomlSizeError } from '../../../runtime/toml.ts'
import { readJson } from '../manifest.ts'
import { AppError } from '../plan.ts'

/** Largest file that detection reads, in bytes. */
const MAX_BYTES = 4 * 2 ** 20

/** Bytes of a source file that say what it is: an app may have thousands of files of megabytes that take no disk. */
const CODE_BYTES = 256 * 1024

/** An app's directory in a workspace, read through the workspace only. Paths are relative to the directory. */
export class AppDirectory {
  readonly #workspace: Workspace
  readonly #dir: string
  readonly #texts = new Map<string, Promise<string | null>>()
  readonly #found = new Set<string>()
  #files: Promise<string[]> | null = null

  /** @param dir relative to the workspace; empty for the workspace itself */
  constructor(workspace: Workspace, dir: string) {
    this.#workspace = workspace
    this.#dir = dir.replace(/^\/workspace(?:\/+|$)/, '').replace(/\/+$/, '')
  }

  /** Reports whether a file exists. */
  async has(path: string): Promise<boolean> {
    return (await this.#stat(path))?.kind === 'file'
  }

  /** Reports whether a directory exists; an empty path is the app's own. */
  async hasDirectory(path: string): Promise<boolean> {
    return (await this.#stat(path))?.kind === 'directory'
  }

  /** Returns the first of these files that exists, or null. */
  async first(paths: readonly string[]): Promise<string | null> {
    for (const path of paths) if (await this.has(path)) return path
    return null
  }

  /** Returns a file's text, or null if there is none. @throws AppError if it is too large */
  text(path: string): Promise<string | null> {
    const known = this.#texts.get(path)
    if (known !== undefined) return known
    const text = this.#read(path)
    this.#texts.set(path, text)
    return text
  }

  /** Returns the beginning of a source file, as far as it says what the file is; null if there is none. Keeps nothing of it. */
  async code(path: string): Promise<string | null> {
    if (!(await this.has(path))) return null
    try {
      using file = await this.#workspace.open(this.#at(path))
      return new TextDecoder().decode(await file.read(0, CODE_BYTES))
    } catch (error) {
      if (error instanceof WorkspaceError) return null
      throw error
    }
  }

  /** Returns the text of the first of these files that exists; empty if none does. */
  async textOf(paths: readonly string[]): Promise<string> {
    const path = await this.first(paths)
    return path === null ? '' : ((await this.text(path)) ?? '')
  }

  /**
   * Returns a JSON file's value, or null if there is no such file.
   *
   * @throws AppError for a mistake in it
   */
  async json(path: string): Promise<unknown> {
    const text = await this.text(path)
    return text === null ? null : readJson(path, text).value
  }

  /**
   * Returns a TOML file's tables, or null if there is no such file.
   *
   * @throws AppError for a mistake in it
   */
  async toml(path: string): Promise<Record<string, unknown> | null> {
    const text = await this.text(path)
    if (text === null) return null
    try {
      return parseToml(text)
    } catch (error) {
      const cause = messageOf(error)
      if (error instanceof TomlSizeError) {
        throw new AppError(`${path} is not read: ${cause}. Name the app's commands in berth.json.`)
      }
      throw new AppError(`${path} is not valid TOML: ${cause}`)
    }
  }

  /** The files that were asked for and exist, in the order in which that happened. */
  get found(): string[] {
    return [...this.#found]
  }

  /** Lists all files except those of `.git` and `node_modules`, sorted. Walks the workspace, so use it rarely. */
  files(): Promise<string[]> {
    this.#files ??= this.#list()
    return this.#files
  }

  #at(path: string): string {
    if (this.#dir === '') return path === '' ? '/workspace/' : path
    return path === '' ? this.#dir : `${this.#dir}/${path}`
  }

  async #stat(path: string) {
    try {
      const entry = await this.#workspace.stat(this.#at(path))
      if (entry?.kind === 'file') this.#found.add(path)
      return entry
    } catch (error) {
      // A path outside the workspace is not a part of the app.
      if (error instanceof WorkspaceError) return null
      throw error
    }
  }

  async #read(path: string): Promise<string | null> {
    const entry = await this.#stat(path)
    if (entry?.kind !== 'file') return null
    try {
      return new TextDecoder().decode(await this.#workspace.read(this.#at(path), MAX_BYTES))
    } catch (error) {
      if (!(error instanceof WorkspaceError)) throw error
      if (error.fault !== 'too_large') return null
      throw new AppError(`${path} is larger than ${MAX_BYTES / 2 ** 20} MiB.`)
    }
  }

  async #list(): Promise<string[]> {
    const prefix = this.#dir === '' ? '' : `${this.#dir}/`
    const all = await this.#workspace.list({ all: false })
    return all.filter((path) => path.startsWith(prefix)).map((path) => path.slice(prefix.length))
  }
}
