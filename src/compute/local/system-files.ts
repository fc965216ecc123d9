import { existsSync, realpathSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'

/** Folders of the system that lie beside /usr, or lead into it. */
const BESIDE_USR = ['bin', 'sbin', 'lib', 'lib32', 'lib64', 'libx32']

/** What programs read of /etc; nothing there that is particular to this machine's users or services, private keys least of all. */
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

/** Folders of PATH that hold stand-ins which cannot do without their owner's home. */
const STAND_INS = /\/shims$/

/** What every system has in these places, so that PATH is never without it. */
const STANDARD_PATH = ['/usr/local/bin', '/usr/bin', '/bin']

/** A file or directory under the name by which it is reached; `target` is set where that name is a link. */
export interface SystemPath {
  path: string
  real: string
}

/** The directories that lie beside /usr on this system: real ones, or links into it. */
export function systemDirectories(): SystemPath[] {
  return BESIDE_USR.map((name) => `/${name}`).flatMap(found)
}

/** What of /etc programs need. */
export function etcFiles(): SystemPath[] {
  return ETC.map((name) => `/etc/${name}`).flatMap(found)
}

/** The directories of a PATH that commands keep. */
export interface ToolDirectories {
  /** The PATH that is left. */
  path: string
  /** Folders outside the system's own that it leads to, with the libraries beside them. */
  directories: SystemPath[]
}

/**
 * Sorts out a PATH for a sandbox that shows only what it must.
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

/** Where a directory really lies; null for what is none, or is out of reach, as another user's on a PATH that was handed on. */
function realDirectory(path: string): string | null {
  try {
    return statSync(path).isDirectory() ? realpathSync(path) : null
  } catch {
    return null
  }
}

function found(path: string): SystemPath[] {
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

/** A directory at least two levels deep that holds none of those to hide. */
function mayShow(dir: string, hidden: readonly string[]): boolean {
  if (dir.split('/').length < 3) return false
  return hidden.every((other) => !`${other}/`.startsWith(`${dir}/`))
}
