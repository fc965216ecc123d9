import type { Workspace } from '../../compute/workspace.ts'
import { percentDecoded } from '../../runtime/decode.ts'
import { type OwnResponse, ownContent, wantsHtml } from '../sites/own-response.ts'
import type { FileRequest, FileResponse, ServeFiles } from '../sites/upstream.ts'
import { evaluate, parseRange, rangeApplies } from './conditions.ts'
import { type Content, Contents, quietly } from './content.ts'
import { listingPage } from './listing.ts'

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
  readonly #prefix: string

  constructor(
    private readonly workspace: Workspace,
    directory: string,
    private readonly options: ServeFilesOptions,
  ) {
    this.#prefix = directory === '' || directory.endsWith('/') ? directory : `${directory}/`
    this.#contents = new Contents(workspace, this.#prefix, Boolean(options.reload))
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
    if (target === null || this.options.isHidden?.(target.names)) return this.#respondMissing(request)
    const { names, isDirectory } = target
    const content = await this.#contents.find((isDirectory ? [...names, INDEX] : names).join('/'))
    if (content !== null) return send(request, content)
    return (await this.#respondWithout(request, target)) ?? this.#respondFallback(request)
  }

  /**
   * Responds to a path that names no file: with a redirect to the directory or the page that it means, with the page, or
   * with a listing.
   */
  async #respondWithout(request: FileRequest, { names, isDirectory }: Target): Promise<FileResponse | null> {
    const path = this.#prefix + names.join('/') || '.'
    const kind = (await quietly(() => this.workspace.stat(path)))?.kind
    const isListed = kind === 'directory' && this.options.listing === true
    if (kind === 'directory' && !isDirectory) {
      const index = await this.#contents.find([...names, INDEX].join('/'))
      index?.dispose()
      if (index !== null) return redirect(request, names, '/')
    }
    const page = kind === undefined || kind === 'directory' ? await this.#findPage(names) : null
    if (page !== null && !isDirectory) return send(request, page)
    page?.dispose()
    if (page !== null) return redirect(request, names, '')
    if (!isListed) return null
    if (!isDirectory) return redirect(request, names, '/')
    const entries = await quietly(() => this.workspace.entries(path))
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

  async #respondFallback(request: FileRequest): Promise<FileResponse> {
    const wanted = this.options.fallback && wantsHtml(request.header('accept'))
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
function redirect(request: FileRequest, names: readonly string[], slash: '/' | ''): FileResponse {
  const query = /\?[^#]*/.exec(request.target)?.[0] ?? ''
  const location = `/${names.map(encodeURIComponent).join('/')}${slash}${query}`
  const headers = { location, 'cache-control': 'no-cache', 'content-length': '0' }
  return { status: 301, headers, body: null }
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

/** The target of a request as a file of a site. */
interface Target {
  /** Names from the site's directory down, decoded. */
  readonly names: readonly string[]
  /** Whether it ends in `/`, so it names a directory. */
  readonly isDirectory: boolean
}

/** The only directory with a leading dot that is served (RFC 8615). */
const WELL_KNOWN = '.well-known'

/**
 * Parses a request target. Returns null if it cannot name a file: a name begins with a dot (except `/.well-known/`),
 * contains an encoded slash, a backslash or a control character, or is not UTF-8.
 */
function targetOf(target: string): Target | null {
  const parts = pathOf(target).split('/')
  const names: string[] = []
  for (const part of parts) {
    if (part === '') continue
    const name = part.includes('%') ? percentDecoded(part) : part
    if (name === null || !isVisible(name, names.length)) return null
    names.push(name)
  }
  return { names, isDirectory: parts.at(-1) === '' }
}

/** Returns the path of a target, encoded, without its query. */
function pathOf(target: string): string {
  const end = target.search(/[?#]/)
  return end === -1 ? target : target.slice(0, end)
}

function isVisible(name: string, depth: number): boolean {
  if (name.startsWith('.')) return depth === 0 && name === WELL_KNOWN
  return !/[/\\\p{Cc}]/u.test(name)
}
