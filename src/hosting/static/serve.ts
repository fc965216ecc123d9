import type { DirectoryEntry, Workspace, WorkspaceEntry } from '../../compute/workspace.ts'
import { parseRange } from '../../http/byte-range.ts'
import { escapeHtml, type OwnResponse, ownContent, wantsHtml } from '../sites/own-response.ts'
import type { FileRequest, FileResponse, ServeFiles } from '../sites/upstream.ts'
import { BasePath, isVisible, pathOf, type Target, targetOf } from './base-path.ts'
import { evaluate, rangeApplies } from './conditions.ts'
import { type Content, Contents, quietly } from './content.ts'
import { type LiveReload, RELOAD_PATH, withReload } from './reload.ts'

/** Options of `serveFiles`. */
export interface ServeFilesOptions {
  /** Whether paths without a file get the site's /index.html, for single-page apps. */
  readonly fallback: boolean
  /** Whether directories without an index.html get a listing. */
  readonly listing?: boolean
  /** Makes pages reload when the files have changed. */
  readonly reload?: LiveReload | null
  /** Hides the entry at these names, from the served directory down, and everything below it. */
  readonly isHidden?: (names: readonly string[]) => boolean
}

const INDEX = 'index.html'

/** The endings of pages that their paths may leave out. */
const PAGE_ENDINGS = ['.html', '.htm']

/**
 * Serves the files of a directory in a workspace: complete, in ranges (RFC 9110, section 14) or by condition (section
 * 13). The path of a page may leave out its `.html`. Links and paths cannot leave the workspace. Nothing below a name that begins with a dot is served, except
 * `/.well-known/`.
 *
 * @param directory relative to the workspace; empty for the workspace itself
 */
export function serveFiles(workspace: Workspace, directory: string, options: ServeFilesOptions): ServeFiles {
  const site = new FileSite(workspace, directory, options)
  return (request) => site.respond(request)
}

class FileSite {
  readonly #contents: Contents
  readonly #basePath: BasePath
  readonly #prefix: string

  constructor(
    private readonly workspace: Workspace,
    directory: string,
    private readonly options: ServeFilesOptions,
  ) {
    this.#prefix = directory === '' || directory.endsWith('/') ? directory : `${directory}/`
    this.#contents = new Contents(workspace, this.#prefix, Boolean(options.reload))
    this.#basePath = new BasePath(this.#contents, async (names) => {
      return (await this.#stat(names)) !== null
    })
  }

  async respond(request: FileRequest): Promise<FileResponse> {
    const { method } = request
    if (method !== 'GET' && method !== 'HEAD') return sendOwn(request, NOT_ALLOWED, { allow: 'GET, HEAD' })
    const { reload } = this.options
    if (reload && pathOf(request.target) === RELOAD_PATH) {
      return method === 'GET'
        ? reload.stream()
        : { status: 200, headers: { 'cache-control': 'no-cache' }, body: null }
    }
    const target = targetOf(request.target)
    if (target === null) return this.#respondMissing(request)
    const response =
      (await this.#respondFile(request, target, [])) ?? (await this.#respondOtherwise(request, target))
    return response ?? (await this.#respondFallback(request, target))
  }

  /**
   * Responds with the file at a path, or the index of the directory; null if there is none.
   *
   * @param above what precedes the path in the address
   */
  async #respondFile(
    request: FileRequest,
    { names, isDirectory }: Target,
    above: readonly string[],
  ): Promise<FileResponse | null> {
    if (this.options.isHidden?.(names)) return null
    const content = await this.#contents.find((isDirectory ? [...names, INDEX] : names).join('/'))
    if (content === null) return null
    const base = names.length + above.length > 0 ? [] : await this.#basePath.of(content)
    if (base.length === 0) return send(request, content)
    content.dispose()
    return redirect(request, base, '/', 302)
  }

  /** Responds to a path at which there is no file: below the base path with what is there without it. */
  async #respondOtherwise(request: FileRequest, target: Target): Promise<FileResponse | null> {
    const { names, isDirectory } = target
    const index = names.length === 0 ? null : await this.#contents.find(INDEX)
    index?.dispose()
    const base = index === null ? [] : await this.#basePath.of(index)
    const isBelow = base.length > 0 && base.every((name, at) => names[at] === name)
    if (!isBelow) return this.#respondWithout(request, target, [])
    const below = { names: names.slice(base.length), isDirectory }
    if (below.names.length === 0 && !isDirectory) return redirect(request, base, '/', 302)
    return (
      (await this.#respondFile(request, below, base)) ?? (await this.#respondWithout(request, below, base))
    )
  }

  /**
   * Responds to a path that names no file: with a redirect to the directory or the page that it means, with the page, or
   * with a listing.
   */
  async #respondWithout(
    request: FileRequest,
    { names, isDirectory }: Target,
    above: readonly string[],
  ): Promise<FileResponse | null> {
    if (this.options.isHidden?.(names)) return null
    const kind = (await this.#stat(names))?.kind
    const isListed = kind === 'directory' && this.options.listing === true
    if (kind === 'directory' && !isDirectory) {
      const index = await this.#contents.find([...names, INDEX].join('/'))
      index?.dispose()
      if (index !== null) return redirect(request, [...above, ...names], '/')
    }
    const page = kind === undefined || kind === 'directory' ? await this.#findPage(names) : null
    if (page !== null && !isDirectory) return send(request, page)
    page?.dispose()
    if (page !== null) return redirect(request, [...above, ...names], '')
    if (!isListed) return null
    if (!isDirectory) return redirect(request, [...above, ...names], '/')
    const entries = await quietly(() => this.workspace.entries(this.#pathOf(names)))
    if (entries === null) return null
    const shown = entries.filter(({ name }) => !this.options.isHidden?.([...names, name]))
    return this.#respondListing(request, listingPage(names, shown))
  }

  /** Returns the page that a path without its ending names, as `/about` does `about.html`; null if there is none. */
  async #findPage(names: readonly string[]): Promise<Content | null> {
    const last = names.at(-1)
    if (last === undefined) return null
    for (const ending of PAGE_ENDINGS) {
      const page = [...names.slice(0, -1), `${last}${ending}`]
      if (!isVisible(`${last}${ending}`, names.length - 1) || this.options.isHidden?.(page)) continue
      const content = await this.#contents.find(page.join('/'))
      if (content !== null) return content
    }
    return null
  }

  #stat(names: readonly string[]): Promise<WorkspaceEntry | null> {
    return quietly(() => this.workspace.stat(this.#pathOf(names)))
  }

  #pathOf(names: readonly string[]): string {
    return this.#prefix + names.join('/') || '.'
  }

  async #respondFallback(request: FileRequest, { names }: Target): Promise<FileResponse> {
    const { fallback, isHidden } = this.options
    const wanted = fallback && wantsHtml(request.header('accept')) && !isHidden?.(names)
    const index = wanted ? await this.#contents.find(INDEX) : null
    return index === null ? this.#respondMissing(request) : send(request, index)
  }

  async #respondMissing(request: FileRequest): Promise<FileResponse> {
    const page = await this.#contents.find('404.html')
    if (page === null) return sendOwn(request, MISSING)
    const { etag: _etag, 'last-modified': _modified, 'accept-ranges': _ranges, ...headers } = page.headers
    return sendWhole(request, page, 404, headers)
  }

  #respondListing(request: FileRequest, page: string): FileResponse {
    const plain = Buffer.from(page)
    const bytes = this.options.reload ? withReload(plain) : new Uint8Array(plain)
    const headers = {
      'content-type': 'text/html; charset=utf-8',
      'cache-control': 'no-cache',
      'content-length': String(bytes.length),
    }
    return { status: 200, headers, body: request.method === 'HEAD' ? null : bytes }
  }
}

/** Sends a content completely, in part, or without a body if the client has it already. */
function send(request: FileRequest, content: Content): FileResponse {
  const result = evaluate(request, content)
  if (result !== 'send') {
    content.dispose()
    const { 'content-type': _type, ...headers } = content.headers
    return { status: result === 'failed' ? 412 : 304, headers: headers, body: null }
  }
  const field = request.method === 'GET' ? request.header('range') : null
  const range = field !== null && rangeApplies(request, content) ? parseRange(field, content.size) : null
  if (range === null) return sendWhole(request, content, 200, content.headers)
  if (range === 'unsatisfiable') {
    content.dispose()
    return sendOwn(request, UNSATISFIABLE, { 'content-range': `bytes */${content.size}` })
  }
  const { start, end } = range
  const headers = {
    ...content.headers,
    'content-length': String(end - start),
    'content-range': `bytes ${start}-${end - 1}/${content.size}`,
  }
  return { status: 206, headers: headers, body: content.body(start, end) }
}

function sendWhole(
  request: FileRequest,
  content: Content,
  status: number,
  headers: Readonly<Record<string, string>>,
): FileResponse {
  const sent = { ...headers, 'content-length': String(content.size) }
  if (request.method !== 'HEAD' && content.size > 0) {
    return { status, headers: sent, body: content.body(0, content.size) }
  }
  content.dispose()
  return { status, headers: sent, body: null }
}

/**
 * Redirects to the path of `names`, with or without a slash at the end. Rebuilds the path, so a `//` in it cannot name
 * another host.
 */
function redirect(
  request: FileRequest,
  names: readonly string[],
  slash: '/' | '',
  status: 301 | 302 = 301,
): FileResponse {
  const query = /\?[^#]*/.exec(request.target)?.[0] ?? ''
  const location = `/${names.map(encodeURIComponent).join('/')}${slash}${query}`
  const headers = { location, 'cache-control': 'no-cache', 'content-length': '0' }
  return { status, headers, body: null }
}

const MISSING: OwnResponse = { status: 404, code: 'not_found', message: 'There is no such page.' }
const NOT_ALLOWED: OwnResponse = {
  status: 405,
  code: 'method_not_allowed',
  message: 'Files answer to GET and HEAD only.',
}
const UNSATISFIABLE: OwnResponse = {
  status: 416,
  code: 'bad_request',
  message: 'The range lies behind the end of the file.',
}

function sendOwn(
  request: FileRequest,
  response: OwnResponse,
  more: Record<string, string> = {},
): FileResponse {
  const { type, content } = ownContent(response, wantsHtml(request.header('accept')))
  const headers = {
    'content-type': type,
    'cache-control': 'no-cache',
    'content-length': String(content.length),
  }
  const body = request.method === 'HEAD' ? null : content
  return { status: response.status, headers: { ...headers, ...more }, body }
}

/** Largest number of entries in a listing. */
const SHOWN = 10_000

/**
 * Returns a page that lists a directory, without names that begin with a dot.
 *
 * @param names path of the directory from the site's root
 */
function listingPage(names: readonly string[], entries: readonly DirectoryEntry[]): string {
  const title = escapeHtml(`/${names.map((name) => `${name}/`).join('')}`)
  const visible = entries.filter(({ name, kind }) => !name.startsWith('.') && kind !== 'other')
  const links = visible.slice(0, SHOWN).map(({ name, kind }) => {
    const tail = kind === 'directory' ? '/' : ''
    // Without "./", a name with a colon would be read as a URL scheme.
    return `<li><a href="./${encodeURIComponent(name)}${tail}">${escapeHtml(name)}${tail}</a></li>`
  })
  if (names.length > 0) links.unshift('<li><a href="../">../</a></li>')
  if (visible.length > SHOWN) links.push(`<li>and ${visible.length - SHOWN} more</li>`)
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>${title}</title>
</head>
<body>
<h1>${title}</h1>
<ul>
${links.join('\n')}
</ul>
</body>
</html>
`
}
