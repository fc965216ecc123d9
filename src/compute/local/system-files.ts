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

/** A file or folder under the name by which it is reached; `target` is set where that name is a link. */
export interface SystemPath {
  path: string
  real: string
}

/** The folders that lie beside /usr on this system: real ones, or links into it. */
export function systemFolders(): SystemPath[] {
  return BESIDE_USR.map((name) => `/${name}`).flatMap(found)
}

/** What of /etc programs need. */
export function etcFiles(): SystemPath[] {
  return ETC.map((name) => `/etc/${name}`).flatMap(found)
}

/** The folders of a PATH that commands keep. */
export interface ToolFolders {
  /** The PATH that is left. */
  path: string
  /** Folders outside the system's own that it leads to, with the libraries beside them. */
  folders: SystemPath[]
}

/**
 * Sorts out a PATH for a sandbox that shows only what it must.
 *
 * @param path the host's PATH
 * @param hidden absolute paths that must not become visible as a part of a tool folder
 */
export function toolFolders(path: string, hidden: readonly string[]): ToolFolders {
  const kept: string[] = []
  const folders: SystemPath[] = []
  for (const folder of new Set(path.split(':'))) {
    const real = folder.startsWith('/') ? realFolder(folder) : null
    if (real === null) continue
    if (isSystem(real)) {
      kept.push(folder)
    } else if (!STAND_INS.test(folder) && mayShow(real, hidden)) {
      kept.push(folder)
      folders.push({ path: folder, real })
      const libraries = join(dirname(real), 'lib')
      if (existsSync(libraries) && mayShow(libraries, hidden)) {
        folders.push({ path: join(dirname(folder), 'lib'), real: libraries })
      }
    }
  }
  for (const folder of STANDARD_PATH) if (!kept.includes(folder)) kept.push(folder)
  return { path: kept.join(':'), folders }
}

/** Where a folder really lies; null for what is none, or is out of reach, as another user's on a PATH that was handed on. */
function realFolder(path: string): string | null {
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

function isSystem(folder: string): boolean {
  return /^\/(usr|bin|sbin|lib\w*)(\/|$)/.test(folder)
}

/** A folder at least two levels deep that holds none of those to hide. */
function mayShow(folder: string, hidden: readonly string[]): boolean {
  if (folder.split('/').length < 3) return false
  return hidden.every((other) => !`${other}/`.startsWith(`${folder}/`))
}
