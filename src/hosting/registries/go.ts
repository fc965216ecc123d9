import type { RegistryParts } from './parts.ts'
import { plainDocument, plainText } from './plain-document.ts'
import { type Dist, type Dists, isPlainPath, type Protocol, type Wanted } from './wanted.ts'

/** Name of the checksum database whose records are used. */
const DATABASE = 'sum.golang.org'

/** Parses a path below a module: its list of versions, its latest version, and a version's files. */
const OF_MODULE = /^(.+)\/(?:@latest|@v\/(?:list|([^/]+)\.(info|mod|zip)))$/

/**
 * The protocol of Go's module proxies (go.dev/ref/mod#goproxy-protocol), with the checksum database below it. Files are
 * kept if their hash is the one in the database; the `go` command verifies its signature itself.
 */
export class GoProtocol implements Protocol {
  /** For an import path, `go` asks for each path that may be its module. */
  readonly reportsMissing = false
  readonly #parts: RegistryParts

  constructor(parts: RegistryParts) {
    this.#parts = parts
  }

  parse(path: string): Wanted | null {
    const plain = path.slice(1)
    if (!isPlainPath(plain)) return null
    if (plain.startsWith('sumdb/')) return documentAt(path)
    const [, module, version, kind] = OF_MODULE.exec(plain) ?? []
    if (module === undefined) return null
    if (version === undefined || kind === 'info') return documentAt(path)
    const file = `${version}.${kind}`
    const key = lookupOf(module, version).slice(1)
    return {
      kind: 'file',
      package: module,
      file,
      documents: [key],
      find: () => this.#find(module, version, file),
    }
  }

  async #find(module: string, version: string, file: string): Promise<Dist> {
    const known = await this.#parts.index.find(module, file, () => this.#lookUp(module, version))
    const url = `${this.#parts.upstream.address}/${module}/@v/${file}`
    // One that no public database has: the registry's own, which `go` checks against go.sum alone.
    return known ?? { url, integrity: null }
  }

  /** Asks the checksum database for the hashes of a version. */
  async #lookUp(module: string, version: string): Promise<Dists> {
    const base = `${this.#parts.upstream.address}/${module}/@v/${version}`
    const text = await plainText(this.#parts.documents, lookupOf(module, version))
    if (text === null) return {}
    const [name, number] = [unescapeCase(module), unescapeCase(version)]
    const zip = hashOf(text, `${name} ${number} `)
    const mod = hashOf(text, `${name} ${number}/go.mod `)
    return {
      ...(zip === null ? {} : { [`${version}.zip`]: { url: `${base}.zip`, integrity: `h1zip-${zip}` } }),
      ...(mod === null ? {} : { [`${version}.mod`]: { url: `${base}.mod`, integrity: `h1mod-${mod}` } }),
    }
  }
}

const lookupOf = (module: string, version: string): string => `/sumdb/${DATABASE}/lookup/${module}@${version}`

const documentAt = (path: string): Wanted =>
  plainDocument(path, /\.info$|@latest$/.test(path) ? 'application/json' : 'text/plain')

/** Returns the hash in a line of go.sum's form, in hexadecimal; null if there is none. */
function hashOf(text: string, start: string): string | null {
  const line = text.split('\n').find((one) => one.startsWith(`${start}h1:`))
  if (line === undefined) return null
  const digest = Buffer.from(line.slice(start.length + 3), 'base64').toString('hex')
  return digest.length === 64 ? digest : null
}

/** Turns `!a` into `A`: paths of modules are escaped for file systems without capitals. */
const unescapeCase = (path: string): string => path.replace(/!([a-z])/g, (_, letter) => letter.toUpperCase())
