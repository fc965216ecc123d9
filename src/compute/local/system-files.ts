import { lstatSync } from 'node:fs'
import { realPathOrNull } from '../../runtime/if-present.ts'

/** Directories of the system beside /usr, or links into it. */
const BESIDE_USR = ['/bin', '/sbin', '/lib', '/lib32', '/lib64', '/libx32']

/** Where distributions keep packages that a language's own installer has installed for all users. */
const LANGUAGE_PACKAGES = ['/var/lib/gems', '/var/lib/ghc']

/** A file or directory: the path by which it is reached, and its real path, which differs for a link. */
export interface SystemPath {
  path: string
  real: string
}

/** Returns the directories beside /usr on this system: real ones, or links into it. */
export function systemDirectories(): SystemPath[] {
  const packages = LANGUAGE_PACKAGES.filter(
    (path) => ((lstatSync(path, { throwIfNoEntry: false })?.mode ?? 0) & 0o170005) === 0o040005,
  )
  return [...BESIDE_USR, ...packages].flatMap(findSystemPath)
}

/** Returns a path with its real one; nothing if it leads nowhere. */
export function findSystemPath(path: string): SystemPath[] {
  const real = realPathOrNull(path)
  return real === null ? [] : [{ path, real }]
}
