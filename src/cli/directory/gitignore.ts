import { lstat, readFile } from 'node:fs/promises'
import { dirname, join, relative, sep } from 'node:path'
import type { Ignore } from 'ignore'
import { isGone } from '../../runtime/if-present.ts'
import { CommandError } from '../errors.ts'
import { unreadable } from '../local-file.ts'

/**
 * Applies the `.gitignore` files of a directory, of its subdirectories, and of its parents up to the top of the git
 * repository (gitignore(5)), and the `.berthignore` files beside them, which have the last word.
 */
export class IgnoreRules {
  private constructor(
    private readonly top: string,
    private readonly rules: Ignore,
  ) {}

  /** Returns the rules for a directory without its own rules, which `enter` adds. */
  static async of(directory: string): Promise<IgnoreRules> {
    const { default: ignore } = await import('ignore')
    const outer = await directoriesAround(directory)
    const around = new IgnoreRules(outer[0] ?? directory, ignore())
    for (const one of outer) await around.enter(one)
    // A directory that is named explicitly, such as a build's output, is used even if it is ignored.
    const isNamedThough = outer.length > 0 && around.ignores(directory, true)
    return isNamedThough ? new IgnoreRules(directory, ignore()) : around
  }

  /** Adds the rules of a directory's own files. Enter parents before their subdirectories. */
  async enter(directory: string): Promise<void> {
    await this.#read(directory, '.gitignore')
    await this.#read(directory, '.berthignore')
  }

  async #read(directory: string, name: string): Promise<void> {
    const text = await readRules(join(directory, name))
    const base = this.#path(directory)
    const lines = text.replace(/^\ufeff/, '').split(/\r?\n/)
    this.rules.add(lines.flatMap((line) => rebasePattern(base, line)))
  }

  /** Reports whether an entry of an entered directory is ignored. */
  ignores(path: string, isDirectory: boolean): boolean {
    return this.rules.ignores(`${this.#path(path)}${isDirectory ? '/' : ''}`)
  }

  #path(path: string): string {
    return relative(this.top, path).split(sep).join('/')
  }
}

/** Largest file of rules, in bytes. */
const MAX_BYTES = 1024 * 1024

/**
 * Returns the text of a file of rules; an empty one if there is none, or something else. As git does, follows no link: the
 * directory may be a copy from elsewhere, with one to a device that never ends.
 *
 * @throws CommandError if it cannot be read, or is too large
 */
async function readRules(file: string): Promise<string> {
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

/**
 * Returns the directories from the top of the git repository to the parent of `directory`; none outside a repository.
 */
async function directoriesAround(directory: string): Promise<string[]> {
  const { existsSync } = await import('node:fs')
  const around: string[] = []
  for (let at = directory; ; at = dirname(at)) {
    if (at !== directory) around.unshift(at)
    if (existsSync(join(at, '.git'))) return around
    if (at === dirname(at)) return []
  }
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
