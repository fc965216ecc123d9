import { gzipSync } from 'bun'

/** A package to be had from a registry made for a test. */
export interface Publication {
  name: string
  version?: string
  dependencies?: Record<string, string>
  /** What `require` gives. */
  says?: string
  /** Bytes of something that cannot be compressed, beside it. */
  ballast?: number
  /** Further files, by path in the archive. */
  files?: Readonly<Record<string, string>>
}

/** A request that a registry got. */
export interface Asked {
  path: string
  accept: string
  known: string | null
}

/** An npm registry on loopback with a few tiny packages: real documents, real tarballs. */
export class Registry implements AsyncDisposable {
  readonly asked: Asked[] = []
  readonly #packages = new Map<
    string,
    Map<string, { manifest: Record<string, unknown>; tarball: Uint8Array }>
  >()
  readonly #server: Bun.Server<undefined>
  /** The port that it listens on, or did. */
  readonly port: number
  /** Answers in place of the registry where it gives something. */
  intercept: (path: string, request: Request) => Response | null | Promise<Response | null> = () => null

  constructor(publications: readonly Publication[] = [], port = 0) {
    this.#server = Bun.serve({
      hostname: '127.0.0.1',
      port,
      idleTimeout: 0,
      fetch: (request) => this.#answer(request),
    })
    this.port = this.#server.port ?? 0
    for (const one of publications) this.publish(one)
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`
  }

  /** How often paths that end so were asked for. */
  count(end: string): number {
    return this.asked.filter(({ path }) => path.endsWith(end)).length
  }

  publish({
    name,
    version = '1.0.0',
    dependencies = {},
    says = name,
    ballast = 0,
    files: more = {},
  }: Publication): void {
    const manifest = { name, version, main: 'index.js', bin: 'index.js', dependencies }
    const files: Record<string, string | Uint8Array> = {
      ...more,
      'package/package.json': JSON.stringify(manifest),
      'package/index.js': `#!/usr/bin/env node\nmodule.exports = ${JSON.stringify(says)}\n`,
    }
    if (ballast > 0) files['package/ballast'] = crypto.getRandomValues(new Uint8Array(ballast))
    const tarball = gzipSync(tar(files))
    const dist = {
      tarball: `${this.url}/${name}/-/${name.split('/').pop()}-${version}.tgz`,
      integrity: `sha512-${new Bun.CryptoHasher('sha512').update(tarball).digest('base64')}`,
      shasum: new Bun.CryptoHasher('sha1').update(tarball).digest('hex'),
    }
    const versions = this.#packages.get(name) ?? new Map()
    versions.set(version, { manifest: { ...manifest, dist }, tarball })
    this.#packages.set(name, versions)
  }

  /** What the record of a version says. */
  dist(name: string, version = '1.0.0'): { tarball: string; integrity: string; shasum: string } {
    return this.#packages.get(name)?.get(version)?.manifest.dist as never
  }

  /** Changes the record of a version: a registry that lies. */
  claim(name: string, dist: Record<string, unknown>, version = '1.0.0'): void {
    const found = this.#packages.get(name)?.get(version)
    if (found !== undefined) found.manifest.dist = dist
  }

  /** Listens no more: the network is cut. */
  async cut(): Promise<void> {
    await this.#server.stop(true)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.cut()
  }

  async #answer(request: Request): Promise<Response> {
    const path = decodeURIComponent(new URL(request.url).pathname)
    const accept = request.headers.get('accept') ?? ''
    this.asked.push({ path, accept, known: request.headers.get('if-none-match') })
    const own = await this.intercept(path, request)
    if (own !== null) return own
    const [, name = '', rest] = /^\/((?:@[^/]+\/)?[^/]+)(?:\/(.*))?$/.exec(path) ?? []
    const versions = this.#packages.get(name)
    if (versions === undefined) return Response.json({ error: 'not found' }, { status: 404 })
    if (rest === undefined) return this.#document(name, versions, request)
    for (const [version, { manifest, tarball }] of versions) {
      if (rest === version) return Response.json(manifest)
      if (rest === `-/${name.split('/').pop()}-${version}.tgz`) return new Response(tarball)
    }
    return Response.json({ error: 'not found' }, { status: 404 })
  }

  #document(name: string, versions: ReadonlyMap<string, { manifest: unknown }>, request: Request): Response {
    const numbers = [...versions.keys()]
    const long = '2020-01-01T00:00:00.000Z'
    const body = JSON.stringify({
      name,
      'dist-tags': { latest: numbers.at(-1) },
      versions: Object.fromEntries([...versions].map(([number, { manifest }]) => [number, manifest])),
      time: { created: long, modified: long, ...Object.fromEntries(numbers.map((number) => [number, long])) },
    })
    const etag = `"${Bun.hash(body).toString(36)}"`
    if (request.headers.get('if-none-match') === etag)
      return new Response(null, { status: 304, headers: { etag } })
    return new Response(body, { headers: { etag, 'content-type': 'application/json' } })
  }
}

/** A tar archive (POSIX ustar) of a few files with short names. */
export function tar(files: Record<string, string | Uint8Array>): Uint8Array<ArrayBuffer> {
  const encoder = new TextEncoder()
  const blocks: Uint8Array[] = []
  for (const [name, content] of Object.entries(files)) {
    const bytes = typeof content === 'string' ? encoder.encode(content) : content
    const head = new Uint8Array(512)
    const put = (text: string, at: number) => head.set(encoder.encode(text), at)
    put(name, 0)
    put('0000755\0', 100)
    put('0000000\0', 108)
    put('0000000\0', 116)
    put(`${bytes.length.toString(8).padStart(11, '0')}\0`, 124)
    put('00000000000\0', 136)
    put('        0', 148)
    put('ustar\x0000', 257)
    const sum = head.reduce((total, byte) => total + byte, 0)
    put(`${sum.toString(8).padStart(6, '0')}\0 `, 148)
    const body = new Uint8Array(Math.ceil(bytes.length / 512) * 512)
    body.set(bytes)
    blocks.push(head, body)
  }
  return Buffer.concat([...blocks, new Uint8Array(1024)])
}
