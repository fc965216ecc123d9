import { percentDecoded } from '../../runtime/decode.ts'
import { fieldsOf, isObject } from '../../runtime/is-object.ts'
import { parseJson } from './parse-json.ts'
import type { RegistryParts } from './parts.ts'
import { PackageError } from './problem.ts'
import type {
  Client,
  Dist,
  Dists,
  DocumentSource,
  ParsedDocument,
  Presented,
  Protocol,
  RawDocument,
  Wanted,
} from './wanted.ts'

/** Media types of a project's page (PEP 691). */
const JSON_TYPE = 'application/vnd.pypi.simple.v1+json'
const HTML_TYPE = 'application/vnd.pypi.simple.v1+html'

const ACCEPT = `${JSON_TYPE}, ${HTML_TYPE};q=0.2, text/html;q=0.1`

/** The file with a wheel's metadata, beside it (PEP 658). */
const METADATA = '.metadata'

const NAME = /^[a-z0-9](?:[a-z0-9._-]{0,200}[a-z0-9])?$/i
const FILE = /^[\w.+!~-]{1,250}$/

/** A file of a project, with the fields of PEP 691. */
type File = Readonly<Record<string, unknown>> & { readonly filename: string; readonly url: string }

/**
 * The Simple Repository API of Python's package indexes (PEP 503, 658, 691). The relay's pages name its own copies of files
 * by relative addresses, wherever the index keeps them.
 */
export class PypiProtocol implements Protocol {
  readonly reportsMissing = true
  readonly #parts: RegistryParts

  constructor(parts: RegistryParts) {
    this.#parts = parts
  }

  parse(path: string, client: Client): Wanted | null {
    const [, section = '', given = '', file = '', ...more] = path.split('/')
    if (more.length > 0 || !NAME.test(given)) return null
    const project = given.toLowerCase().replace(/[-_.]+/g, '-')
    if (section === 'simple' && path.endsWith('/'))
      return {
        kind: 'document',
        source: sourceOf(project),
        present: (text) => present(project, text, client),
      }
    const decoded = percentDecoded(file) ?? ''
    if (section !== 'files' || !FILE.test(decoded)) return null
    const documents = [project]
    return {
      kind: 'file',
      package: project,
      file: decoded,
      documents,
      find: () => this.#find(project, decoded),
    }
  }

  async #find(project: string, file: string): Promise<Dist> {
    const dist = await this.#parts.index.find(project, file, async () => {
      // Its page adds the files.
      await this.#parts.documents.get(sourceOf(project))
      return null
    })
    if (dist === null) throw new PackageError(`The package index has no ${file} of ${project}.`, 404)
    return dist
  }
}

const sourceOf = (project: string): DocumentSource => ({
  key: project,
  path: `/${project}/`,
  accept: ACCEPT,
  package: project,
  read: (document) => readPage(project, document),
})

/** Parses a project's page, in JSON or in HTML, into that of the relay, in JSON. */
function readPage(project: string, document: RawDocument): ParsedDocument {
  const isHtml = document.type.endsWith('html')
  const page = isHtml ? pageOfHtml(document) : parseJson(document.body, document.url)
  const { files, versions } = fieldsOf(page)
  if (!Array.isArray(files))
    throw new PackageError(`The package index's response for ${project} is no page of a project.`, 424)
  const dists: Record<string, Dist> = {}
  const shown = files.filter(isFile).flatMap((file): File[] => {
    const url = absolute(file.url, document.url)
    if (url === null || !FILE.test(file.filename)) return []
    dists[file.filename] = { url, integrity: hashOf(file.hashes) }
    const metadata = hashOf(file['core-metadata'] ?? file['dist-info-metadata'])
    if (metadata !== null) dists[file.filename + METADATA] = { url: `${url}${METADATA}`, integrity: metadata }
    const { 'dist-info-metadata': _, 'core-metadata': __, ...rest } = file
    const described =
      metadata === null ? {} : { 'core-metadata': file['core-metadata'] ?? file['dist-info-metadata'] }
    return [{ ...rest, ...described, url: `../../files/${project}/${encodeURIComponent(file.filename)}` }]
  })
  const meta = { 'api-version': '1.1' }
  const text = JSON.stringify({
    meta,
    name: project,
    files: shown,
    ...(Array.isArray(versions) ? { versions } : {}),
  })
  return { text, dists: dists satisfies Dists }
}

const isFile = (file: unknown): file is File =>
  isObject(file) && typeof file.filename === 'string' && typeof file.url === 'string'

/** Returns the SHA-256 among hashes; null if it is not there. */
function hashOf(hashes: unknown): string | null {
  const { sha256 } = fieldsOf(hashes)
  return typeof sha256 === 'string' && /^[0-9a-f]{64}$/i.test(sha256)
    ? `sha256-${sha256.toLowerCase()}`
    : null
}

function absolute(url: string, base: string): string | null {
  const parsed = URL.parse(url, base)
  if (parsed === null || !/^https?:$/.test(parsed.protocol)) return null
  parsed.hash = ''
  return parsed.href
}

/** Reads a page of PEP 503 as if it were one of PEP 691. */
function pageOfHtml({ body, url }: RawDocument): { files: object[] } {
  const html = new TextDecoder().decode(body)
  const base = attribute(/<base\b([^>]*)>/i.exec(html)?.[1] ?? '', 'href') ?? ''
  const files = [...html.matchAll(/<a\b([^>]*)>([^<]*)<\/a>/gi)].flatMap(([, attributes = '', text = '']) => {
    const href = URL.parse(attribute(attributes, 'href') ?? '', new URL(base, url).href)
    if (href === null) return []
    const metadata =
      attribute(attributes, 'data-core-metadata') ?? attribute(attributes, 'data-dist-info-metadata')
    const yanked = attribute(attributes, 'data-yanked')
    return [
      {
        filename: unescapeHtml(text).trim(),
        url: href.href,
        hashes: hashesOf(href.hash.slice(1)),
        'requires-python': attribute(attributes, 'data-requires-python'),
        yanked: yanked === null ? false : yanked || true,
        'core-metadata': hashesOf(metadata ?? ''),
      },
    ]
  })
  return { files }
}

/** Parses `ALGORITHM=HEX`. */
function hashesOf(text: string): Record<string, string> {
  const [, name, digest] = /^(\w+)=([0-9a-f]+)$/i.exec(text) ?? []
  return name !== undefined && digest !== undefined ? { [name.toLowerCase()]: digest } : {}
}

/** Returns an attribute of a tag, unescaped; empty if it has no value, null if it is missing. */
function attribute(attributes: string, name: string): string | null {
  const found = new RegExp(
    `(?:^|\\s)${name}(?:\\s*=\\s*(?:"([^"]*)"|'([^']*)'|([^\\s"'>]+)))?(?=\\s|/|$)`,
    'i',
  ).exec(attributes)
  return found === null ? null : unescapeHtml(found[1] ?? found[2] ?? found[3] ?? '')
}

const ENTITIES: Readonly<Record<string, string>> = { lt: '<', gt: '>', quot: '"', amp: '&' }

const unescapeHtml = (text: string): string =>
  text.replace(/&(?:#(\d+)|#x([0-9a-f]+)|(lt|gt|quot|amp));/gi, (all, decimal, hex, name) => {
    if (name !== undefined) return ENTITIES[name.toLowerCase()] ?? all
    return String.fromCodePoint(Math.min(0x10ffff, Number.parseInt(decimal ?? hex, decimal ? 10 : 16)))
  })

/** Returns a project's page in the form that a client understands. */
function present(project: string, text: string, { accept }: Client): Presented {
  if (accept.includes(JSON_TYPE)) return { body: text, type: JSON_TYPE }
  const { files } = JSON.parse(text) as { files: File[] }
  const links = files.map((file) => {
    const hash = fieldsOf(file.hashes).sha256
    const python = file['requires-python']
    const { yanked } = file
    const metadata = fieldsOf(file['core-metadata']).sha256
    return [
      `<a href="${Bun.escapeHTML(file.url)}${hash === undefined ? '' : `#sha256=${hash}`}"`,
      typeof python === 'string' ? ` data-requires-python="${Bun.escapeHTML(python)}"` : '',
      yanked ? ` data-yanked="${Bun.escapeHTML(yanked === true ? '' : String(yanked))}"` : '',
      metadata === undefined ? '' : ` data-core-metadata="sha256=${metadata}"`,
      `>${Bun.escapeHTML(file.filename)}</a><br>\n`,
    ].join('')
  })
  const head = '<!DOCTYPE html><html><head><meta name="pypi:repository-version" content="1.0">'
  const body = `${head}<title>${project}</title></head><body>\n${links.join('')}</body></html>\n`
  return { body, type: accept.includes(HTML_TYPE) ? HTML_TYPE : 'text/html' }
}
