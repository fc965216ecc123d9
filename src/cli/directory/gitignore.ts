import { readFile } from 'node:fs/promises'
import { dirname, join, relative, sep } from 'node:path'
import type { Ignore } from 'ignore'
import { CommandError } from '../errors.ts'

/**
 * What `.gitignore` files say of a directory's entries: those of the directory, of the directories in it, and of the
 * directories around it up to the top of the git repository it lies in (gitignore(5)).
 */
export class IgnoreRules {
  private constructor(
    private readonly top: string,
    private readonly rules: Ignore,
  ) {}

  /** The rules for a directory, before those of its own `.gitignore` are added with `enter`. */
  static async of(directory: string): Promise<IgnoreRules> {
    const { default: ignore } = await import('ignore')
    const outer = await directoriesAround(directory)
    const around = new IgnoreRules(outer[0] ?? directory, ignore())
    for (const one of outer) await around.enter(one)
    // Who names an ignored directory, such as the output of a build, means what is in it.
    const isNamedThough = outer.length > 0 && around.ignores(directory, true)
    return isNamedThough ? new IgnoreRules(directory, ignore()) : around
  }

  /** Adds the rules of a directory's own `.gitignore`. Directories are entered from the outside in. */
  async enter(directory: string): Promise<void> {
    const file = join(directory, '.gitignore')
    const text = await readFile(file, 'utf8').catch((error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT' || error.code === 'EISDIR') return ''
      throw new CommandError(`${file} cannot be read: ${error.message}.`)
    })
    const base = this.#path(directory)
    const lines = text.replace(/^\ufeff/, '').split(/\r?\n/)
    this.rules.add(lines.flatMap((line) => rebasePattern(base, line)))
  }

  /** Whether a file or directory in a directory that was entered is left out. */
  ignores(path: string, isDirectory: boolean): boolean {
    return this.rules.ignores(`${this.#path(path)}${isDirectory ? '/' : ''}`)
  }

  #path(path: string): string {
    return relative(this.top, path).split(sep).join('/')
  }
}

/** The directories from the top of the git repository down to the one around `directory`; none outside a repository. */
async function directoriesAround(directory: string): Promise<string[]> {
  const { existsSync } = await import('node:fs')
  const around: string[] = []
  for (let at = directory; ; at = dirname(at)) {
    if (at !== directory) around.unshift(at)
    if (existsSync(join(at, '.git'))) return around
    if (at === dirname(at)) return []
  }
}

/** A line of the `.gitignore` in the directory `base` as a rule of the top directory. */
function rebasePattern(base: string, line: string): string[] {
  if (line.trim() === '' || line.startsWith('#')) return []
  if (base === '') return [line]
  const [, sign = '', pattern = ''] = /^(!?)(.*)$/.exec(line) ?? []
  const directory = base.replace(/[\\*?[\]!# ]/g, '\\$&')
  // A pattern with a slash before its end holds from its directory on, another at any depth below it.
  const isAnchored = pattern.replace(/\s+$/, '').slice(0, -1).includes('/')
  return [`${sign}/${directory}/${isAnchored ? pattern.replace(/^\//, '') : `**/${pattern}`}`]
}
