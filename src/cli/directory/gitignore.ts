import { existsSync } from 'node:fs'
import { lstat, readFile } from 'node:fs/promises'
import { dirname, join, relative, sep } from 'node:path'
import type { Ignore } from 'ignore'
import { isGone } from '../../runtime/if-present.ts'
import { CommandError } from '../errors.ts'
import { unreadable } from '../local-file.ts'

/** What git ignores beside what `.gitignore` files name, and how. */
export interface GitRules {
  /** Texts with rules for the whole work tree, the least important first: the person's own, and `info/exclude`. */
  readonly excludes: readonly string[]
  /** Whether rules ignore the case of names. */
  readonly ignoresCase: boolean
}

/**
 * Applies the `.gitignore` files of a directory, of its subdirectories, and of its parents up to the top of the git
 * repository (gitignore(5)), and the `.berthignore` files beside them, which have the last word.
 */
export class IgnoreRules {
  private constructor(
    private readonly top: string,
    /** The rules of all files. */
    private readonly rules: Ignore,
    /** Those of `.berthignore` files. */
    private readonly own: Ignore,
  ) {}

  /**
   * Returns the rules for a directory without its own rules, which `enter` adds.
   *
   * @param git null if git is not asked
   */
  static async of(directory: string, git: GitRules | null): Promise<IgnoreRules> {
    const { default: ignore } = await import('ignore')
    const empty = () => ignore({ ignorecase: git?.ignoresCase ?? false })
    const top = workTreeAround(directory) ?? directory
    const around = new IgnoreRules(top, empty(), empty())
    for (const text of git?.excludes ?? []) around.#add(top, text)
    for (const one of directoriesBetween(top, directory)) await around.enter(one)
    // A directory that is named explicitly, such as a build's output, is used even if it is ignored.
    const isNamedThough = top !== directory && around.ignores(directory, true)
    return isNamedThough ? new IgnoreRules(directory, empty(), empty()) : around
  }

  /**
   * Adds the rules of a directory's own files. Enter parents before their subdirectories.
   *
   * @param git of a nested repository
   */
  async enter(directory: string, git: GitRules | null = null): Promise<void> {
    for (const text of git?.excludes ?? []) this.#add(directory, text)
    this.#add(directory, await readIgnoreFile(join(directory, '.gitignore')))
    this.#add(directory, await readIgnoreFile(join(directory, '.berthignore')), true)
  }

  #add(directory: string, text: string, isOwn = false): void {
    const base = this.#path(directory)
    const lines = text.replace(/^\ufeff/, '').split(/\r?\n/)
    const rules = lines.flatMap((line) => rebasePattern(base, inBytes(line)))
    this.rules.add(rules)
    if (isOwn) this.own.add(rules)
  }

  /**
   * Reports whether an entry of an entered directory is ignored.
   *
   * @param isTracked whether git tracks it, so that only `.berthignore` files count
   */
  ignores(path: string, isDirectory: boolean, isTracked = false): boolean {
    return (isTracked ? this.own : this.rules).ignores(`${this.#path(path)}${isDirectory ? '/' : ''}`)
  }

  #path(path: string): string {
    return inBytes(relative(this.top, path).split(sep).join('/'))
  }
}

/** Returns a text with a character for each byte of its UTF-8: to git, `?` and `[…]` mean a byte. */
const inBytes = (text: string): string => Buffer.from(text).toString('latin1')

/** Largest file of rules, in bytes. @bound owner */
const MAX_BYTES = 1024 * 1024

/**
 * Returns the text of a file of rules; an empty one if there is none, or something else. As git does, follows no link: the
 * directory may be a copy from elsewhere, with one to a device that never ends.
 *
 * @throws CommandError if it cannot be read, or is too large
 */
export async function readIgnoreFile(file: string): Promise<string> {
  try {
    const stats = await lstat(file)
    if (!stats.isFile()) return ''
    if (stats.size > MAX_BYTES)
      throw new CommandError(
        `${file} is larger than the ${MAX_BYTES / 1024 / 1024} MiB that berth reads of it.`,
      )
    return await readFile(file, 'utf8')
  } catch (error) {
    if (error instanceof CommandError) throw error
    if (isGone(error)) return ''
    throw unreadable(file, error)
  }
}

/** Returns the top of the git work tree that a directory is in; null outside one. */
export function workTreeAround(directory: string): string | null {
  for (let at = directory; ; at = dirname(at)) {
    if (existsSync(join(at, '.git'))) return at
    if (at === dirname(at)) return null
  }
}

/** Returns the directories from `top` to the parent of a directory in it. */
function directoriesBetween(top: string, directory: string): string[] {
  const between: string[] = []
  for (let at = directory; at !== top; at = dirname(at)) between.unshift(dirname(at))
  return between
}

/** Converts a line of an ignore file in `base` to a rule of the top directory. */
function rebasePattern(base: string, line: string): string[] {
  if (line.trim() === '' || line.startsWith('#')) return []
  if (base === '') return [line]
  const [, sign = '', pattern = ''] = /^(!?)(.*)$/.exec(line) ?? []
  const directory = base.replace(/[\\*?[\]!# ]/g, '\\$&')
  // A pattern with a slash before its end is relative to its directory. Any other matches at every depth below it.
  const isAnchored = pattern.trimEnd().slice(0, -1).includes('/')
  return [`${sign}/${directory}/${isAnchored ? pattern.replace(/^\//, '') : `**/${pattern}`}`]
}
