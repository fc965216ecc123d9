import { parseJson } from '../parse-json.ts'
import type { RegistryParts } from '../parts.ts'
import { PackageError } from '../problem.ts'
import type { Client, Dist, Dists, DocumentSource, Presented, Protocol, Wanted } from '../wanted.ts'
import { readDocument, readManifest, rewriteTarballUrls, tarballUrlFor, versionOf } from './document.ts'
import { type DocumentRequest, parsePath } from './request.ts'

/**
 * The forms of a package's document. The abbreviated one has only the fields for an install and a tenth of the size.
 */
type Form = 'full' | 'abbreviated'

/** Media type of the abbreviated form. */
const ABBREVIATED = 'application/vnd.npm.install-v1+json'

const ACCEPT: Readonly<Record<Form, string>> = {
  full: 'application/json',
  abbreviated: `${ABBREVIATED}; q=1.0, application/json; q=0.8`,
}

/** The protocol of the npm registry: packages, versions, tags and tarballs. */
export class NpmProtocol implements Protocol {
  readonly reportsMissing = true
  readonly #parts: RegistryParts

  constructor(parts: RegistryParts) {
    this.#parts = parts
  }

  parse(path: string, client: Client): Wanted | null {
    const parsed = parsePath(path)
    if (parsed === null) return null
    if (parsed.kind === 'ping')
      return { kind: 'answer', present: () => ({ body: '{}', type: 'application/json' }) }
    const { name } = parsed
    if (parsed.kind === 'tarball') {
      const { file } = parsed
      const documents = [keyOf(name, 'full'), keyOf(name, 'abbreviated')]
      return { kind: 'file', package: name, file, documents, find: () => this.#find(name, file) }
    }
    const form = formOf(parsed, client)
    return {
      kind: 'document',
      source: sourceOf(name, form),
      present: (text) => present(text, parsed, client, form),
    }
  }

  async #find(name: string, file: string): Promise<Dist> {
    const dist = await this.#parts.index.find(name, file, () => this.#ofVersion(name, file))
    if (dist === null)
      throw new PackageError(`The registry has no ${file} of ${name} that could be verified.`, 404)
    return dist
  }

  /** Asks for the document of one version, which is small: a lock file may name one of which no other was seen. */
  async #ofVersion(name: string, file: string): Promise<Dists> {
    const version = versionOf(name, file)
    if (version === null) return {}
    const path = `/${name.replace('/', '%2f')}/${encodeURIComponent(version)}`
    const response = await this.#parts.upstream.document(path, 'application/json', null)
    const document = response.kind === 'document' ? parseJson(response.body, response.url) : null
    return readManifest(name, version, document)?.dists ?? {}
  }
}

const keyOf = (name: string, form: Form): string => `${form} ${name}`

const sourceOf = (name: string, form: Form): DocumentSource => ({
  key: keyOf(name, form),
  other: keyOf(name, form === 'full' ? 'abbreviated' : 'full'),
  path: `/${name.replace('/', '%2f')}`,
  accept: ACCEPT[form],
  package: name,
  read: ({ body, url }) => readDocument(name, parseJson(body, url)),
})

/** Returns the form of a document that a client asks for. */
const formOf = (parsed: DocumentRequest, { accept }: Client): Form =>
  parsed.kind === 'packument' && accept.includes(ABBREVIATED) ? 'abbreviated' : 'full'

function present(document: string, parsed: DocumentRequest, client: Client, form: Form): Presented {
  const part = parsed.kind === 'packument' ? document : partOf(document, parsed)
  const body = rewriteTarballUrls(part, tarballUrlFor(client.userAgent, client.base))
  return { body, type: form === 'abbreviated' ? ABBREVIATED : 'application/json' }
}

/** Returns a part of a package's document: one version, or its tags. */
function partOf(document: string, parsed: Exclude<DocumentRequest, { kind: 'packument' }>): string {
  const { versions, 'dist-tags': tags = {} } = JSON.parse(document)
  if (parsed.kind === 'tags') return JSON.stringify(tags)
  const tagged = Object.hasOwn(tags, parsed.version) ? tags[parsed.version] : parsed.version
  if (!Object.hasOwn(versions, tagged))
    throw new PackageError(`The registry has no ${parsed.name}@${parsed.version}.`, 404)
  return JSON.stringify(versions[tagged])
}
