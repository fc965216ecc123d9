import type { RegistryParts } from './parts.ts'
import { plainDocument, plainText } from './plain-document.ts'
import { type Dist, type Dists, isPlainPath, type Protocol, type Wanted } from './wanted.ts'

/** Matches what describes other files, and what may change: not kept by a hash. */
const DOCUMENT = /(?:^|\/)maven-metadata[\w-]*\.xml$|\.(?:sha1|sha256|sha512|md5|asc)$/

/** The layout of Maven's repositories. Files are kept by the hash beside them. */
export class MavenProtocol implements Protocol {
  /** Maven and Gradle ask several repositories for the same. */
  readonly reportsMissing = false
  readonly #parts: RegistryParts

  constructor(parts: RegistryParts) {
    this.#parts = parts
  }

  parse(path: string): Wanted | null {
    const plain = path.slice(1)
    if (!isPlainPath(plain) || !plain.includes('/')) return null
    if (DOCUMENT.test(plain))
      return plainDocument(path, plain.endsWith('.xml') ? 'application/xml' : undefined)
    const cut = plain.lastIndexOf('/')
    const [directory, file] = [plain.slice(0, cut), plain.slice(cut + 1)]
    const find = () => this.#find(directory, file)
    return { kind: 'file', package: directory, file, documents: [`${plain}.sha1`], find }
  }

  async #find(directory: string, file: string): Promise<Dist> {
    const url = `${this.#parts.upstream.address}/${directory}/${file}`
    // A snapshot may change under its name.
    if (directory.endsWith('-SNAPSHOT')) return { url, integrity: null }
    const known = await this.#parts.index.find(directory, file, () => this.#lookUp(directory, file, url))
    return known ?? { url, integrity: null }
  }

  async #lookUp(directory: string, file: string, url: string): Promise<Dists> {
    const text = await plainText(this.#parts.documents, `/${directory}/${file}.sha1`)
    const [digest] = /\b[0-9a-f]{40}\b/i.exec(text ?? '') ?? []
    return digest === undefined ? {} : { [file]: { url, integrity: `sha1-${digest.toLowerCase()}` } }
  }
}
