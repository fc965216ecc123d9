import { existsSync, realpathSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { homeDirectory } from '../../runtime/home-directory.ts'

/** Directories of the system beside /usr, or links into it. */
const BESIDE_USR = ['bin', 'sbin', 'lib', 'lib32', 'lib64', 'libx32']

/**
 * What programs read of /etc. Nothing here is particular to this machine's users or services, private keys least of
 * all.
 */
const ETC = [
  'alternatives',
  'fonts',
  'gai.conf',
  'gitconfig',
  'host.conf',
  'hosts',
  'ld.so.cache',
  'localtime',
  'mime.types',
  'nsswitch.conf',
  'os-release',
  'pki/ca-trust',
  'pki/tls/certs',
  'pki/tls/cert.pem',
  'pki/tls/openssl.cnf',
  'protocols',
  'resolv.conf',
  'services',
  'ssl/certs',
  'ssl/cert.pem',
  'ssl/openssl.cnf',
  'timezone',
]

/** Directories of PATH with version managers' shims, which do not work without their owner's home. */
const STAND_INS = /\/shims$/

/** Directories that every system has, so PATH always includes them. */
const STANDARD_PATH = ['/usr/local/bin', '/usr/bin', '/bin']

/** A file or directory: the path by which it is reached, and its real path, which differs for a link. */
export interface SystemPath {
  path: string
  real: string
}

/** Returns the directories beside /usr on this system: real ones, or links into it. */
export function systemDirectories(): SystemPath[] {
  return BESIDE_USR.map((name) => `/${name}`).flatMap(findSystemPath)
}

/** Returns the files and directories of /etc that programs need. */
export function etcFiles(): SystemPath[] {
  return ETC.map((name) => `/etc/${name}`).flatMap(findSystemPath)
}

/** The directories of a PATH that commands keep. */
interface ToolDirectories {
  /** The PATH that is left. */
  path: string
  /** Directories outside the system's own that PATH leads to, with the libraries beside them. */
  directories: SystemPath[]
}

/** Returns the absolute paths that must not become visible as a part of a tool directory. */
export function hiddenDirectories(dataDir: string): string[] {
  const home = homeDirectory()
  return home === null ? [dataDir] : [dataDir, home]
}

/**
 * Selects the parts of PATH for a sandbox that shows as little as possible.
 *
 * @param path the host's PATH
 * @param hidden absolute paths that must not become visible as a part of a tool directory
 */
export function toolDirectories(path: string, hidden: readonly string[]): ToolDirectories {
  const kept: string[] = []
  const directories: SystemPath[] = []
  for (const dir of new Set(path.split(':'))) {
    const real = dir.startsWith('/') ? realDirectory(dir) : null
    if (real === null) continue
    if (isSystem(real)) {
      kept.push(dir)
    } else if (!STAND_INS.test(dir) && mayShow(real, hidden)) {
      kept.push(dir)
      directories.push({ path: dir, real })
      const libraries = join(dirname(real), 'lib')
      if (existsSync(libraries) && mayShow(libraries, hidden)) {
        directories.push({ path: join(dirname(dir), 'lib'), real: libraries })
      }
    }
  }
  for (const dir of STANDARD_PATH) if (!kept.includes(dir)) kept.push(dir)
  return { path: kept.join(':'), directories }
}

/**
 * Returns a directory's real path; null if it is not a directory or not accessible, such as another user's on an
 * inherited PATH.
 */
function realDirectory(path: string): string | null {
  try {
    return statSync(path).isDirectory() ? realpathSync(path) : null
  } catch {
    return null
  }
}

/** Returns a path with its real one; nothing if it leads nowhere. */
export function findSystemPath(path: string): SystemPath[] {
  try {
    return [{ path, real: realpathSync(path) }]
  } catch {
    // There is none, or the system is just replacing it.
    return []
  }
}

function isSystem(dir: string): boolean {
  return /^\/(usr|bin|sbin|lib\w*)(\/|$)/.test(dir)
}

/** Reports whether a directory is at least two levels deep and contains none of the hidden paths. */
function mayShow(dir: string, hidden: readonly string[]): boolean {
  if (dir.split('/').length < 3) return false
  return hidden.every((other) => !`${other}/`.startsWith(`${dir}/`))
}
