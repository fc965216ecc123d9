import { readFile } from 'node:fs/promises'
import { dirname, join, relative, sep } from 'node:path'
import type { Ignore } from 'ignore'
import { CommandError } from '../errors.ts'

/**
 * What `.gitignore` files say of a folder's entries: those of the folder, of the folders in it, and of the
 * folders around it up to the top of the git repository it lies in (gitignore(5)).
 */
export class IgnoreRules {
  private constructor(
    private readonly top: string,
    private readonly rules: Ignore,
  ) {}

  /** The rules for a folder, before those of its own `.gitignore` are added with `enter`. */
  static async of(folder: string): Promise<IgnoreRules> {
    const { default: ignore } = await import('ignore')
    const outer = await foldersAround(folder)
    const around = new IgnoreRules(outer[0] ?? folder, ignore())
    for (const one of outer) await around.enter(one)
    // Who names an ignored folder, such as the output of a build, means what is in it.
    const isNamedThough = outer.length > 0 && around.ignores(folder, true)
    return isNamedThough ? new IgnoreRules(folder, ignore()) : around
  }

  /** Adds the rules of a folder's own `.gitignore`. Folders are entered from the outside in. */
  async enter(folder: string): Promise<void> {
    const file = join(folder, '.gitignore')
    const text = await readFile(file, 'utf8').catch((error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT' || error.code === 'EISDIR') return ''
      throw new CommandError(`${file} cannot be read: ${error.message}.`)
    })
    const base = this.#path(folder)
    const lines = text.replace(/^\ufeff/, '').split(/\r?\n/)
    this.rules.add(lines.flatMap((line) => below(base, line)))
  }

  /** Whether a file or folder in a folder that was entered is left out. */
  ignores(path: string, isFolder: boolean): boolean {
    return this.rules.ignores(`${this.#path(path)}${isFolder ? '/' : ''}`)
  }

  #path(path: string): string {
    return relative(this.top, path).split(sep).join('/')
  }
}

/** The folders from the top of the git repository down to the one around `folder`; none outside a repository. */
async function foldersAround(folder: string): Promise<string[]> {
  const { existsSync } = await import('node:fs')
  const around: string[] = []
  for (let at = folder; ; at = dirname(at)) {
    if (at !== folder) around.unshift(at)
    if (existsSync(join(at, '.git'))) return around
    if (at === dirname(at)) return []
  }
}

/** A line of the `.gitignore` in the folder `base` as a rule of the top folder. */
function below(base: string, line: string): string[] {
  if (line.trim() === '' || line.startsWith('#')) return []
  if (base === '') return [line]
  const [, sign = '', pattern = ''] = /^(!?)(.*)$/.exec(line) ?? []
  const folder = base.replace(/[\\*?[\]!# ]/g, '\\$&')
  // A pattern with a slash before its end holds from its folder on, another at any depth below it.
  const isAnchored = pattern.replace(/\s+$/, '').slice(0, -1).includes('/')
  return [`${sign}/${folder}/${isAnchored ? pattern.replace(/^\//, '') : `**/${pattern}`}`]
}
