import { lstatSync, readFileSync, realpathSync, statSync } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { quoted, SourceError } from '../errors.ts'

/** A repository on this machine that may be taken. */
interface LocalRepository {
  /** The directory with its data, absolute, without links. */
  gitDirectory: string
  /** Directories that git must accept even if another user owns them. */
  safeDirectories: string[]
}

/**
 * Finds a repository's directory below an allowed one, by the real paths of both.
 *
 * @param allowed as configured, absolute
 * @returns its path without links
 * @throws SourceError that does not reveal whether a path exists that is not allowed
 */
export function findRepository(path: string, allowed: readonly string[]): string {
  const real = realpath(path)
  const roots = allowed.flatMap((one) => realpath(one) ?? [])
  if (real === null || !isBelow(real, roots)) {
    if (real === null && isBelow(resolve(path), [...allowed, ...roots])) {
      throw new SourceError('There is no such directory on this machine.')
    }
    throw new SourceError(
      'The directory is not among those that repositories may be taken from. Start berth with --source-folders naming it or a directory above.',
    )
  }
  const stats = statSync(real, { throwIfNoEntry: false })
  if (stats === undefined) throw new SourceError('There is no such directory on this machine.')
  if (!stats.isDirectory()) throw new SourceError('It is a file and no directory with a git repository.')
  return real
}

/** What git reads of a repository that it gives out (gitrepository-layout(5)). */
const PARTS = [
  'HEAD',
  'config',
  'config.worktree',
  'packed-refs',
  'shallow',
  'info',
  'objects',
  'refs',
  'reftable',
]

/** Largest file of a repository that is read here, bytes. @bound peer */
const MAX_TEXT_BYTES = 2 ** 20

/** The head of a section of settings that includes a file (git-config(1)); several can be on a line. */
const INCLUDE = /^(?!\s*[#;]).*\[\s*include/im

/**
 * Checks that all data of a repository is in allowed directories, before git reads any of it. Its links, the object
 * directories that it borrows from, and the files that its settings include could lead elsewhere. Git would follow them,
 * and its errors repeat lines of files that it does not understand.
 *
 * @throws SourceError that names what leads elsewhere
 */
export async function checkRepository(given: string, allowed: readonly string[]): Promise<LocalRepository> {
  const path = findRepository(given, allowed)
  const roots = allowed.flatMap((one) => realpath(one) ?? [])
  const own = realpath(gitDirectoryOf(path))
  if (own === null || !isBelow(own, roots)) throw worktreeElsewhere()
  const shared = textOf(join(own, 'commondir'), roots)?.trim()
  const common = shared === undefined ? own : realpath(resolve(own, shared))
  if (common === null || !isBelow(common, roots)) throw worktreeElsewhere()
  const seen = new Set<string>()
  for (const dir of new Set([own, common])) {
    for (const part of PARTS) await checkLinks(join(dir, part), roots, seen)
    for (const name of ['config', 'config.worktree']) {
      if (!INCLUDE.test(textOf(join(dir, name), roots) ?? '')) continue
      throw new SourceError(
        `The repository’s file ${name} includes settings of other files, which is not taken. Remove "include" and "includeIf" from it, or name a clone of the repository.`,
      )
    }
  }
  const objects = realpath(join(common, 'objects'))
  if (objects !== null) await checkAlternates(objects, roots, seen)
  return { gitDirectory: own, safeDirectories: [path, `${path}/.git`, own, common] }
}

/** Returns the directory with a repository's data: `.git`, where a file of that name leads, or the directory itself. */
function gitDirectoryOf(path: string): string {
  const inner = join(path, '.git')
  const stats = lstatSync(inner, { throwIfNoEntry: false })
  if (stats === undefined) return path
  if (!stats.isFile()) return inner
  const target = /^gitdir: (.+)$/m.exec(textOf(inner, [path]) ?? '')?.[1]
  return target === undefined ? inner : resolve(path, target)
}

/** Checks that no link at or below a path leads out of the allowed directories. */
async function checkLinks(path: string, roots: readonly string[], seen: Set<string>): Promise<void> {
  const stats = lstatSync(path, { throwIfNoEntry: false })
  if (stats?.isSymbolicLink()) {
    const real = realpath(path)
    if (real === null || !isBelow(real, roots)) {
      throw new SourceError(
        `The repository’s ${quoted(relativeName(path))} is a link that leads out of the allowed directories. Name a clone of the repository, or allow the other directory with --source-folders.`,
      )
    }
    return checkLinks(real, roots, seen)
  }
  if (!stats?.isDirectory() || seen.has(path)) return
  seen.add(path)
  for (const entry of await readdir(path, { withFileTypes: true })) {
    if (!entry.isFile()) await checkLinks(join(path, entry.name), roots, seen)
  }
}

/** Checks the object directories that this one borrows from, and theirs. */
async function checkAlternates(objects: string, roots: readonly string[], seen: Set<string>): Promise<void> {
  for (const line of (textOf(join(objects, 'info/alternates'), roots) ?? '').split('\n')) {
    if (line === '' || line.startsWith('#')) continue
    const real = line.startsWith('"') ? null : realpath(resolve(objects, line))
    if (real === null || !isBelow(real, roots)) {
      throw new SourceError(
        'The repository borrows objects from one that is not below the allowed directories (objects/info/alternates). Have it keep its own with "git repack -a -d" and remove that file, or allow the other directory with --source-folders.',
      )
    }
    if (seen.has(real)) continue
    await checkLinks(real, roots, seen)
    await checkAlternates(real, roots, seen)
  }
}

/** Returns a file's text; undefined if there is none. @throws SourceError if it lies elsewhere or is too large */
function textOf(path: string, roots: readonly string[]): string | undefined {
  const real = realpath(path)
  const stats = real === null ? undefined : statSync(real, { throwIfNoEntry: false })
  if (real === null || stats === undefined) return undefined
  if (!isBelow(real, roots) || !stats.isFile() || stats.size > MAX_TEXT_BYTES) {
    throw new SourceError(`The repository’s ${quoted(relativeName(path))} cannot be used.`)
  }
  return readFileSync(real, 'utf8')
}

/** Returns the last two names of a path, which tell a file of a repository. */
const relativeName = (path: string): string => path.split('/').slice(-2).join('/')

const worktreeElsewhere = (): SourceError =>
  new SourceError(
    'The directory is a worktree of a repository that is not below the allowed directories. Name the repository itself, or allow its directory with --source-folders.',
  )

/** Matches what is a server's, whichever berth has it: its programs write there, and its code is its account's. */
const OF_SERVER = /\/servers\/srv_[0-9a-z]{26}(?:\/|$)/

const isBelow = (path: string, roots: readonly string[]): boolean =>
  !OF_SERVER.test(path) &&
  roots.some((root) => path === root || path.startsWith(root.endsWith('/') ? root : `${root}/`))

function realpath(path: string): string | null {
  try {
    return realpathSync(path)
  } catch {
    return null
  }
}
