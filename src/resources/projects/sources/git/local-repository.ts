import { realpathSync, statSync } from 'node:fs'
import { resolve } from 'node:path'
import { SourceError } from '../errors.ts'

/** A repository on this machine that may be taken. */
interface LocalRepository {
  /** Absolute, without links. */
  path: string
  /** Directories that git must accept even if another user owns them. */
  safeDirectories: string[]
}

/**
 * Finds a repository's directory below an allowed one, by the real paths of both.
 *
 * @param allowed as configured, absolute
 * @throws SourceError that does not reveal whether a path exists that is not allowed
 */
export function findRepository(path: string, allowed: readonly string[]): LocalRepository {
  const real = realpath(path)
  const roots = allowed.flatMap((one) => realpath(one) ?? [])
  if (real === null || !isBelow(real, roots)) {
    if (real === null && isBelow(resolve(path), [...allowed, ...roots])) {
      throw new SourceError('There is no such folder on this machine.')
    }
    throw new SourceError(
      'The folder is not among those that repositories may be taken from. Start berth with --source-folders naming it or a folder above.',
    )
  }
  const stats = statSync(real, { throwIfNoEntry: false })
  if (stats === undefined) throw new SourceError('There is no such folder on this machine.')
  if (!stats.isDirectory()) throw new SourceError('It is a file and no folder with a git repository.')
  return { path: real, safeDirectories: [real, `${real}/.git`] }
}

/**
 * Reports whether the directories in which a repository keeps its data are allowed too: a worktree's lie elsewhere.
 */
export function mayRead(directories: readonly string[], allowed: readonly string[]): boolean {
  const roots = allowed.flatMap((one) => realpath(one) ?? [])
  return directories.every((dir) => {
    const real = realpath(dir)
    return real !== null && isBelow(real, roots)
  })
}

const isBelow = (path: string, roots: readonly string[]): boolean =>
  roots.some((root) => path === root || path.startsWith(root.endsWith('/') ? root : `${root}/`))

function realpath(path: string): string | null {
  try {
    return realpathSync(path)
  } catch {
    return null
  }
}
