import { percentDecoded } from '../../runtime/decode.ts'
import { fieldsOf, isObject } from '../../runtime/is-object.ts'
import { parseJson } from './parse-json.ts'
import type { RegistryParts } from './parts.ts'
import { PackageError } from './problem.ts'
import type { Client, Dist, DocumentSource, ParsedDocument, Protocol, RawDocument, Wanted } from './wanted.ts'

const NAME = /^[a-z][a-z0-9_-]{0,63}$/i
const VERSION = /^[\w.+-]{1,128}$/

/** The registry's description of itself. */
const CONFIG: DocumentSource = {
  key: 'config.json',
  path: '/config.json',
  accept: 'application/json',
  package: null,
  read: ({ body, url }) => {
    const { dl } = fieldsOf(parseJson(body, url))
    if (typeof dl !== 'string') throw new PackageError(`${url} does not say where crates are.`, 424)
    return { text: dl, dists: {} }
  },
}

/** The protocol of Cargo's sparse indexes (doc.rust-lang.org/cargo/reference/registry-index.html). */
export class CratesProtocol implements Protocol {
  readonly reportsMissing = true
  readonly #parts: RegistryParts

  constructor(parts: RegistryParts) {
    this.#parts = parts
  }

  parse(path: string, { base }: Client): Wanted | null {
    const parts = path.slice(1).split('/')
    const name = parts.at(-1) ?? ''
    if (path === '/config.json') {
      const body = JSON.stringify({ dl: `${base}/files/{crate}/{version}`, api: null })
      return { kind: 'answer', present: () => ({ body, type: 'application/json' }) }
    }
    if (parts[0] === 'files')
      return this.#file(parts[1] ?? '', percentDecoded(parts[2] ?? '') ?? '', parts.length)
    if (!NAME.test(name) || path !== `/${pathOf(name)}`) return null
    return { kind: 'document', source: sourceOf(name), present: (body) => ({ body, type: 'text/plain' }) }
  }

  #file(crate: string, version: string, length: number): Wanted | null {
    if (length !== 3 || !NAME.test(crate) || !VERSION.test(version)) return null
    const name = crate.toLowerCase()
    const file = `${name}-${version}.crate`
    return {
      kind: 'file',
      package: name,
      file,
      documents: [name],
      find: () => this.#find(crate, version, file),
    }
  }

  async #find(crate: string, version: string, file: string): Promise<Dist> {
    const { index, documents } = this.#parts
    const source = sourceOf(crate.toLowerCase())
    const dist = await index.find(crate.toLowerCase(), file, async () => {
      await documents.get(source)
      return null
    })
    if (dist === null) throw new PackageError(`The registry has no ${crate} ${version}.`, 404)
    return { ...dist, url: addressOf(await documents.get(CONFIG), crate, version, dist.integrity ?? '') }
  }
}

const sourceOf = (name: string): DocumentSource => ({
  key: name,
  path: `/${pathOf(name)}`,
  accept: 'text/plain, */*',
  package: name,
  read: (document) => readIndex(name, document),
})

/** Returns the path of a crate's file in an index. */
function pathOf(name: string): string {
  const lower = name.toLowerCase()
  return `${directoryOf(lower)}/${lower}`
}

function directoryOf(name: string): string {
  if (name.length <= 2) return String(name.length)
  return name.length === 3 ? `3/${name[0]}` : `${name.slice(0, 2)}/${name.slice(2, 4)}`
}

/** Reads an index file: a line of JSON for each version. */
function readIndex(name: string, { body, url }: RawDocument): ParsedDocument {
  const text = new TextDecoder().decode(body)
  const dists: Record<string, Dist> = {}
  for (const line of text.split('\n')) {
    if (line.trim() === '') continue
    const version = parseJson(Buffer.from(line), url)
    if (!isObject(version)) continue
    const { vers, cksum } = version
    if (typeof vers !== 'string' || typeof cksum !== 'string' || !/^[0-9a-f]{64}$/.test(cksum)) continue
    dists[`${name}-${vers}.crate`] = { url: '', integrity: `sha256-${cksum}` }
  }
  return { text, dists }
}

/** Returns the address of a crate by the registry's template. */
function addressOf(template: string, crate: string, version: string, integrity: string): string {
  const marks: Record<string, string> = {
    crate,
    version: encodeURIComponent(version),
    prefix: crate.length < 4 ? directoryOf(crate) : `${crate.slice(0, 2)}/${crate.slice(2, 4)}`,
    lowerprefix: directoryOf(crate.toLowerCase()),
    'sha256-checksum': integrity.slice('sha256-'.length),
  }
  const filled = template.replace(/\{([\w-]+)\}/g, (all, mark) => marks[mark] ?? all)
  return filled === template ? `${template}/${crate}/${encodeURIComponent(version)}/download` : filled
}
