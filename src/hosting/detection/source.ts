import { posix } from 'node:path'
import { type Workspace, WorkspaceError } from '../../compute/workspace.ts'
import { messageOf } from '../../runtime/error-info.ts'
import { fieldsOf } from '../../runtime/is-object.ts'
import { parseToml, TomlSizeError } from '../../runtime/toml.ts'
import { readJson } from '../app-runtime/manifest.ts'
import { AppError, type Evidence } from '../app-runtime/plan.ts'

/** Most files of a source that detection knows of, nearest to the top first. @bound peer */
const MAX_FILES = 5_000

/** Most bytes that detection reads of a file. @bound peer */
const MAX_BYTES = 256 * 1024

/** Largest `berth.json` and `package.json`, whose mistakes are explained with their place, in bytes. @bound peer */
const MAX_DOCUMENT_BYTES = 4 * 2 ** 20

/** Most milliseconds that detection looks for files. */
const MAX_MS = 5_000

/** Most characters of an evidence. @bound reader */
const MAX_SAYS = 200

/** Directories whose files are nobody's source: packages, caches, output of tools and repositories. */
const SKIPPED = new Set([
  '.git',
  '.hg',
  '.svn',
  'node_modules',
  '__pycache__',
  '.tox',
  '.gradle',
  '.terraform',
])

/** Of a server's own workspace, the directory of its projects, which are no part of what the workspace publishes. */
const PROJECTS = 'projects'

/** The options of `Source.open`. */
interface SourceOptions {
  workspace: Workspace
  /** Relative to the workspace; empty for the workspace itself. */
  directory: string
}

/**
 * One bounded look at an app's source: its list of files, and their texts when asked for. Nothing outside its directory is
 * read. Bounds that applied and links that lead out are `warnings`.
 */
export class Source {
  readonly #workspace: Workspace
  readonly #directory: string
  readonly #files = new Set<string>()
  readonly #directories = new Set<string>([''])
  readonly #texts = new Map<string, Promise<string | null>>()
  readonly #warnings = new Set<string>()

  private constructor({ workspace, directory }: SourceOptions) {
    this.#workspace = workspace
    this.#directory = directory.replace(/^\/workspace(?:\/+|$)/, '').replace(/\/+$/, '')
  }

  /** Lists the files of a directory, nearest to the top first, within the bounds. */
  static async open(options: SourceOptions): Promise<Source> {
    const source = new Source(options)
    await source.#list(performance.now() + MAX_MS)
    return source
  }

  /** Sentences about what of the source was not looked at. */
  get warnings(): string[] {
    return [...this.#warnings]
  }

  /** All files, relative to the source. */
  get files(): ReadonlySet<string> {
    return this.#files
  }

  /** All directories, relative to the source; the source itself is empty. */
  get directories(): ReadonlySet<string> {
    return this.#directories
  }

  /** Returns the view of a directory, relative to the source. */
  at(directory: string): SourceDirectory {
    return new SourceDirectory(this, directory)
  }

  /** Adds a warning: one sentence. */
  warn(sentence: string): void {
    this.#warnings.add(sentence)
  }

  /**
   * Returns a file's text, UTF-16 with a mark included; null if there is none. Of a larger file, the beginning.
   *
   * @param most bytes that it may have to be read whole
   */
  text(path: string, most: number = MAX_BYTES): Promise<string | null> {
    const known = this.#texts.get(path)
    if (known !== undefined) return known
    const text = this.#files.has(path) ? this.#read(path, most) : Promise.resolve(null)
    this.#texts.set(path, text)
    return text
  }

  /** Returns the beginning of a file of code, or all of a small one, and keeps none of it; empty if there is none. */
  async code(path: string): Promise<string> {
    return (this.#files.has(path) ? await this.#read(path, MAX_BYTES, false) : null) ?? ''
  }

  async #read(path: string, most: number, isWhole = true): Promise<string | null> {
    try {
      using file = await this.#workspace.open(this.#inWorkspace(path))
      if (isWhole && file.size > most) this.warn(`Of ${path} only the first ${most / 1024} KB were read.`)
      return decode(await file.read(0, most))
    } catch (error) {
      if (error instanceof WorkspaceError) return null
      throw error
    }
  }

  /** Lists level by level, so that a bound leaves out what lies deepest. */
  async #list(deadline: number): Promise<void> {
    for (const directory of this.#directories) {
      if (performance.now() > deadline) {
        return this.warn(`Only what was found within ${MAX_MS / 1000} s was looked at.`)
      }
      for (const { name, kind } of await this.#entries(directory)) {
        const path = directory === '' ? name : `${directory}/${name}`
        const real = kind === 'other' ? await this.#followed(path) : kind
        if (real === 'file') this.#files.add(path)
        // A link to a directory is not entered: it may lead to one above it.
        else if (kind === 'directory' && !this.#isSkipped(path, name)) this.#directories.add(path)
        if (this.#files.size < MAX_FILES) continue
        return this.warn(`Only the first ${MAX_FILES} files were looked at.`)
      }
    }
  }

  async #entries(directory: string) {
    try {
      const entries = await this.#workspace.entries(this.#inWorkspace(directory))
      // A virtual environment has packages, not source.
      const isSkipped = directory !== '' && entries.some(({ name }) => name === 'pyvenv.cfg')
      if (isSkipped) this.#directories.delete(directory)
      return isSkipped ? [] : entries
    } catch (error) {
      if (!(error instanceof WorkspaceError)) throw error
      if (error.fault === 'too_large') this.warn(`${directory} has too many entries to be looked at.`)
      return []
    }
  }

  #isSkipped(path: string, name: string): boolean {
    return SKIPPED.has(name) || (this.#directory === '' && path === PROJECTS)
  }

  async #followed(path: string): Promise<'file' | 'directory' | 'other' | null> {
    try {
      return (await this.#workspace.stat(this.#inWorkspace(path)))?.kind ?? null
    } catch (error) {
      if (!(error instanceof WorkspaceError)) throw error
      if (error.fault === 'outside')
        this.warn(`${path} is a link that leads out of the source; it was not read.`)
      return null
    }
  }

  #inWorkspace(path: string): string {
    const whole = [this.#directory, path].filter((part) => part !== '').join('/')
    return whole === '' ? '/workspace/' : whole
  }
}

/** A directory of a source. Paths are relative to it. */
export class SourceDirectory {
  constructor(
    readonly source: Source,
    /** Relative to the source; empty for the source itself. */
    readonly path: string,
  ) {}

  /** Returns the view of a directory in it. */
  at(directory: string): SourceDirectory {
    return new SourceDirectory(this.source, this.#at(directory))
  }

  /** The directories above it up to the source itself, nearest first. */
  get above(): SourceDirectory[] {
    const names = this.path === '' ? [] : this.path.split('/')
    return names.map((_, index) => this.source.at(names.slice(0, names.length - 1 - index).join('/')))
  }

  /** Returns the path of one of its files, relative to the source. */
  pathOf(file: string): string {
    return posix.join(this.path, file)
  }

  /** All files in it and below, sorted. */
  get files(): string[] {
    const prefix = this.path === '' ? '' : `${this.path}/`
    return [...this.source.files]
      .filter((path) => path.startsWith(prefix))
      .map((path) => path.slice(prefix.length))
      .sort()
  }

  /** Reports whether a file exists. */
  has(path: string): boolean {
    return this.source.files.has(this.#at(path))
  }

  /** Reports whether a directory exists. */
  hasDirectory(path: string): boolean {
    return this.source.directories.has(this.#at(path))
  }

  /** Returns the first of these files that exists, or null. */
  first(paths: readonly string[]): string | null {
    return paths.find((path) => this.has(path)) ?? null
  }

  /** Returns a file's text, or its beginning if it is large; null if there is none. */
  text(path: string): Promise<string | null> {
    return this.source.text(this.#at(path))
  }

  /** Returns the beginning of a file of code, or all of a small one, and keeps none of it; empty if there is none. */
  code(path: string): Promise<string> {
    return this.source.code(this.#at(path))
  }

  /** Returns the text of the first of these files that exists; empty if none does. */
  async textOf(...paths: readonly string[]): Promise<string> {
    const path = this.first(paths)
    return path === null ? '' : ((await this.text(path)) ?? '')
  }

  /**
   * Returns a JSON file's value, or null if there is no such file.
   *
   * @throws AppError for a mistake in it, with its place
   */
  async json(path: string): Promise<unknown> {
    const text = await this.document(path)
    return text === null ? null : readJson(path, text).value
  }

  /** Returns the text of a file whose mistakes are explained with their place; null if there is none. */
  document(path: string): Promise<string | null> {
    return this.source.text(this.#at(path), MAX_DOCUMENT_BYTES)
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

  /** Returns the tables of a file in TOML, YAML or JSON by its ending; null if there is no such file or it is not valid. */
  async tables(path: string): Promise<Record<string, unknown> | null> {
    const text = await this.text(path)
    if (text === null) return null
    const parse = path.endsWith('.toml')
      ? parseToml
      : /\.ya?ml$/.test(path)
        ? Bun.YAML.parse
        : Bun.JSONC.parse
    try {
      return fieldsOf(parse(text))
    } catch {
      return null
    }
  }

  /**
   * Returns where a file says something.
   *
   * @param pattern matches the line; null for the file's existence. One that matches no line proves the existence alone
   */
  async evidence(path: string, pattern: RegExp | null = null): Promise<Evidence> {
    const file = this.#at(path)
    const lines = pattern === null ? [] : (await this.code(path)).split(/\r?\n/)
    const index = lines.findIndex((line) => pattern?.test(line))
    if (index === -1) return { file, line: null, says: 'exists' }
    return { file, line: index + 1, says: (lines[index] ?? '').trim().slice(0, MAX_SAYS) }
  }

  /** Returns a path within it, without elements that are empty or leave it, relative to the source. */
  #at(path: string): string {
    const names: string[] = this.path === '' ? [] : this.path.split('/')
    const floor = names.length
    for (const name of path.split('/')) {
      if (name === '..') {
        if (names.length === floor) return '\0'
        names.pop()
      } else if (name !== '' && name !== '.') names.push(name)
    }
    return names.join('/')
  }
}

/** Decodes UTF-8, or UTF-16 that begins with its mark, as editors of Windows write it. */
function decode(bytes: Uint8Array): string {
  const encoding =
    bytes[0] === 0xff && bytes[1] === 0xfe
      ? 'utf-16le'
      : bytes[0] === 0xfe && bytes[1] === 0xff
        ? 'utf-16be'
        : 'utf-8'
  return new TextDecoder(encoding).decode(bytes)
}
