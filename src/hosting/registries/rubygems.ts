import type { RegistryParts } from './parts.ts'
import { plainDocument, plainSource } from './plain-document.ts'
import { PackageError } from './problem.ts'
import { type Dist, type DocumentSource, isPlainPath, type Protocol, type Wanted } from './wanted.ts'

/** Matches what passes unchanged: the lists of the compact index, and what `gem` reads of one version and of all. */
const PASSED =
  /^\/(?:versions|names|quick\/Marshal\.4\.8\/[^/]+\.gemspec\.rz|(?:latest_|prerelease_)?specs\.4\.8\.gz)$/

/** The protocol of RubyGems' compact index (guides.rubygems.org/rubygems-org-compact-index-api). */
export class RubyGemsProtocol implements Protocol {
  readonly reportsMissing = true
  readonly #parts: RegistryParts

  constructor(parts: RegistryParts) {
    this.#parts = parts
  }

  parse(path: string): Wanted | null {
    // `gem` asks for it to find out whether there is a compact index.
    if (path === '/') return { kind: 'answer', present: () => ({ body: '', type: 'text/plain' }) }
    if (!isPlainPath(path.slice(1))) return null
    if (PASSED.test(path)) return plainDocument(path)
    const [, kind, file = '', more] = path.split('/')
    if (more !== undefined) return null
    if (kind === 'info') return plainDocument(path, undefined, infoOf(file))
    if (kind !== 'gems' || !file.endsWith('.gem')) return null
    const names = namesIn(file)
    const [name] = names
    if (name === undefined) return null
    const documents = names.map((one) => infoOf(one).key)
    return { kind: 'file', package: name, file, documents, find: () => this.#find(names, file) }
  }

  async #find(names: readonly string[], file: string): Promise<Dist> {
    const { index, documents, upstream } = this.#parts
    for (const name of names) {
      const dist = await index.find(name, file, async () => {
        // It adds the files.
        await documents.get(infoOf(name)).catch(ignoreMissing)
        return null
      })
      if (dist !== null) return { ...dist, url: `${upstream.address}/gems/${file}` }
    }
    throw new PackageError(`The registry has no ${file}.`, 404)
  }
}

/** Returns the names of which a file may be a version, the shortest first: both may have hyphens. */
const namesIn = (file: string): string[] =>
  [...file.matchAll(/-(?=\d)/g)].map(({ index }) => file.slice(0, index))

function ignoreMissing(error: unknown): void {
  if (!(error instanceof PackageError) || error.status !== 404) throw error
}

/** A gem's versions: a line for each, with its number, platform and dependencies, and what else is known of it. */
function infoOf(name: string): DocumentSource {
  const source = plainSource(`/info/${name}`)
  return {
    ...source,
    package: name,
    read(document) {
      const { text } = source.read(document)
      const lines = text.matchAll(/^(\d\S*) [^|\n]*\|(?:[^\n]*,)?checksum:([0-9a-f]{64})\b/gm)
      const dists = [...lines].map(([, version, digest]) => [
        `${name}-${version}.gem`,
        { url: '', integrity: `sha256-${digest}` },
      ])
      return { text, dists: Object.fromEntries(dists) }
    },
  }
}
