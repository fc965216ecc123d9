import { type Dirent, statSync } from 'node:fs'
import { join } from 'node:path'
import { entriesOf, realPathOrNull } from '../../runtime/if-present.ts'
import type { SystemPath } from './system-files.ts'

/**
 * What programs read of /etc. Nothing here is particular to this machine's users or services, private keys least of
 * all.
 */
const ETC = [
  'alternatives',
  'crypto-policies',
  // pip fails if it may see this file and not read it.
  'debian_version',
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
  'pki/java',
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

/** Directories and files of /etc that belong to a language, to which its files below /usr are links. */
const PACKAGES =
  /^(?:java|java-[\w.]+-openjdk(?:-[\w.]+)?|maven\d?|ant|gradle|groovy|php\d*|php\.ini|php\.d|python\d?(?:\.\d+)?|perl|R|dotnet|mono|ImageMagick-\d)$/

/** Names that are never shown: keys, passwords, and settings that hold them as a rule. */
const SECRETS =
  /^(?:private|environment|pool\.d|settings(?:-security)?\.xml|Renviron\.site|\.?(?:netrc|npmrc|pypirc)|pip\.conf|auth\.json|(?!.*\.template$).*(?:password|passwd|secret|credential).*|.*\.(?:key|p12|pfx|jks|keystore)|.*[-_.]?(?:priv|private)?key\.pem)$/i

/** The part of /etc that servers see. */
interface EtcSelection {
  /** Directories of which everything is shown. */
  readonly directories: readonly SystemPath[]
  /** Files, also those of directories of which only a part is shown. */
  readonly files: readonly SystemPath[]
  /** Links in such directories. What one leads to is shown only if it is at its own path. */
  readonly links: readonly string[]
  /** Directories of which a part is shown. */
  readonly partial: readonly string[]
}

/** Returns the files and directories of /etc that programs need: those that everybody on this machine may read. */
export function selectEtc(): EtcSelection {
  const selection: Selection = { directories: [], files: [], links: [], partial: [] }
  for (const name of ETC) {
    const path = `/etc/${name}`
    const real = realPathOrNull(path)
    if (real !== null) add(path, real, selection)
  }
  for (const { name } of entriesOf('/etc')) {
    const path = `/etc/${name}`
    // A package's own directory is no link; one that a person has made may lead anywhere.
    if (PACKAGES.test(name) && realPathOrNull(path) === path) add(path, path, selection)
  }
  return selection
}

/** The selection while it is made. */
type Selection = { [part in keyof EtcSelection]: EtcSelection[part][number][] }

/** Adds a file, or a directory with what may be shown of it. */
function add(path: string, real: string, selection: Selection): void {
  const kind = publicKind(real)
  if (kind === 'file') selection.files.push({ path, real })
  if (kind !== 'directory') return
  const inside: Selection = { directories: [], files: [], links: [], partial: [path] }
  if (collect(path, real, inside)) selection.directories.push({ path, real })
  else {
    selection.files.push(...inside.files)
    selection.links.push(...inside.links)
    selection.partial.push(...inside.partial)
  }
}

/** Collects what may be shown of a directory, and reports whether that is everything. */
function collect(path: string, real: string, inside: Selection): boolean {
  let isAll = true
  for (const entry of entriesOf(real)) {
    const inner = { path: join(path, entry.name), real: join(real, entry.name) }
    const kind = SECRETS.test(entry.name) ? null : kindOf(entry, inner.real)
    if (kind === null) isAll = false
    else if (kind === 'file') inside.files.push(inner)
    else if (kind === 'link') inside.links.push(inner.path)
    else {
      inside.partial.push(inner.path)
      if (!collect(inner.path, inner.real, inside)) isAll = false
    }
  }
  return isAll
}

/** Returns what an entry is; null if it may not be shown. */
function kindOf(entry: Dirent, path: string): 'file' | 'directory' | 'link' | null {
  return entry.isSymbolicLink() ? 'link' : publicKind(path)
}

/** Returns what a path without links leads to; null if not everybody may read it. */
function publicKind(path: string): 'file' | 'directory' | null {
  try {
    const stats = statSync(path)
    if (stats.isDirectory()) return (stats.mode & 0o005) === 0o005 ? 'directory' : null
    return stats.isFile() && (stats.mode & 0o004) !== 0 ? 'file' : null
  } catch {
    return null
  }
}
