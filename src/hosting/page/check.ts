import { messageOf } from '../../runtime/error-info.ts'
import type { AppLog } from '../app-runtime/log/log.ts'
import type { AppPlan } from '../app-runtime/plan.ts'
import type { Upstream } from '../sites/upstream.ts'
import { assetsOf, type PageAsset } from './assets.ts'
import { describeError } from './causes.ts'
import { isPage, type PageResponse, type Visitor, visitorOf } from './visitor.ts'

/** What is asked of an app that has just come up. */
export interface PageCheckOptions {
  readonly visit: Visitor
  /** Its own URL, `http://127.0.0.1:4800/`. */
  readonly url: string
  /** First label of its other host name, `SLUG.localhost`; null for none. */
  readonly slug: string | null
  /** Its health path. */
  readonly health: string
  /** What the app is, for a person, as `AppPlan.kind`. */
  readonly kind: string
  /** Whether berth serves its files. */
  readonly isFiles: boolean
  readonly signal: AbortSignal
}

/** What the pages of an app show, each as sentences for a person. */
export interface PageFindings {
  /** What keeps a visitor from seeing them as they are meant. */
  readonly warnings: readonly string[]
  /** Where they lead that is not asked. */
  readonly notes: readonly string[]
}

/** Milliseconds for all requests together. */
const LIMIT_MS = 2000

/** @bound peer */
const MAX_REDIRECTS = 3

/** Largest number of scripts and styles that are asked for. @bound peer */
const MAX_ASSETS = 20

/** Number of them that are asked for at once. */
const AT_ONCE = 4

/** Number of them that a warning names. */
const NAMED = 5

/** Bytes of a page that are read, and of a script or style. */
const PAGE_BYTES = 1024 * 1024
const ASSET_BYTES = 1024

const PAGES = 'text/html,application/xhtml+xml,*/*;q=0.8'

/**
 * Asks an app for its home page and its health page, once, and for the scripts and styles of these, and finds what is wrong
 * with them though the app responds. Requests no other origin.
 */
export async function checkPages(options: PageCheckOptions): Promise<PageFindings> {
  const check = new PageCheck({
    ...options,
    signal: AbortSignal.any([options.signal, AbortSignal.timeout(LIMIT_MS)]),
  })
  for (const path of new Set(['/', options.health])) await check.run(path)
  return check
}

class PageCheck implements PageFindings {
  readonly warnings: string[] = []
  readonly notes: string[] = []
  readonly #options: PageCheckOptions

  constructor(options: PageCheckOptions) {
    this.#options = options
  }

  /** Asks for one path and what it leads to. */
  async run(path: string): Promise<void> {
    let url = new URL(path, this.#options.url)
    for (let redirects = 0; redirects <= MAX_REDIRECTS; redirects += 1) {
      const response = await this.#visit(url, PAGES, PAGE_BYTES)
      if (response === null) return
      const location = /^30[12378]$/.test(String(response.status)) ? response.header('location') : null
      if (location === null) {
        const leads = redirects === 0 ? '' : `, which leads to ${url.pathname},`
        return this.#judge(`${path}${leads}`, response, url)
      }
      const next = this.#next(path, location, url)
      if (next === null) return
      url = next
    }
  }

  /** Returns where a redirect leads, at the app itself; null if it leads elsewhere. */
  #next(path: string, location: string, from: URL): URL | null {
    const next = URL.parse(location, from.href)
    if (next === null) return null
    const { url, slug } = this.#options
    const isOwn = next.host === from.host || next.hostname === `${slug}.localhost`
    if (next.protocol === 'https:' && (isOwn || isLoopback(next.hostname))) {
      this.warnings.push(
        `The app redirects ${path} to ${next.href}, but berth's addresses have http alone, so that no page can be reached. Turn the redirect off here (Django: SECURE_SSL_REDIRECT = False; Rails: config.force_ssl = false).`,
      )
      return null
    }
    if (next.protocol === 'http:' && isOwn) return new URL(`${next.pathname}${next.search}`, url)
    this.notes.push(`The app redirects ${path} to ${next.href}, which berth does not ask.`)
    return null
  }

  async #judge(asked: string, response: PageResponse, url: URL): Promise<void> {
    const { status, body } = response
    if (isWrong(response))
      this.warnings.push(`The app responds to GET ${asked} with ${describeError({ status, body })}`)
    else if (status < 300 && isPage(response)) await this.#judgeAssets(response, url)
  }

  async #judgeAssets({ body }: PageResponse, page: URL): Promise<void> {
    const { assets } = assetsOf(body, page.href)
    const own = assets.filter(({ url }) => url.origin === page.origin).slice(0, MAX_ASSETS)
    const missing: string[] = []
    for (let at = 0; at < own.length; at += AT_ONCE) {
      const asked = own.slice(at, at + AT_ONCE).map(({ url }) => this.#faultOf(url))
      missing.push(...(await Promise.all(asked)).filter((fault) => fault !== null))
    }
    if (missing.length > 0) this.warnings.push(`${missingText(page, missing)} ${this.#assetRemedy()}`)
    for (const { url } of assets)
      if (url.origin !== page.origin && isLoopback(url.hostname))
        this.notes.push(
          `The page ${page.pathname} loads ${url.href}, which berth does not ask, and a browser may not reach.`,
        )
    if (!this.#options.isFiles) return
    const others = Map.groupBy(
      assets.filter(({ url }) => url.origin !== page.origin).slice(0, MAX_ASSETS),
      ({ url }) => url.origin,
    )
    for (const [origin, those] of others) await this.#judgeOthers(page, origin, those)
  }

  /** Warns if another origin has what is here, too: the app was built for its address there. */
  async #judgeOthers(page: URL, origin: string, assets: readonly PageAsset[]): Promise<void> {
    const bases = await Promise.all(assets.map(({ url }) => this.#baseOf(url)))
    const [base] = bases
    if (base == null || bases.some((other) => other !== base)) return
    this.warnings.push(
      `The page ${page.pathname} loads its scripts and styles from ${origin}${base} and not from here, where they are, too: it was built for that address, and shows what is published there. Build it with the base path "/" (Vite: base; webpack: publicPath; Hugo: baseURL).`,
    )
  }

  /** Returns the path below which another origin has a file that is here without it; null if the file is not here. */
  async #baseOf({ pathname }: URL): Promise<string | null> {
    const names = pathname.split('/').slice(1)
    for (let depth = 0; depth < Math.min(names.length, 8); depth += 1) {
      const here = new URL(`/${names.slice(depth).join('/')}`, this.#options.url)
      const response = await this.#visit(here, '*/*', ASSET_BYTES)
      if (response?.status === 200 && !isPage(response))
        return `/${names
          .slice(0, depth)
          .map((name) => `${name}/`)
          .join('')}`
    }
    return null
  }

  /** Returns the path of a script or style and what is wrong with it; null if nothing is. */
  async #faultOf(url: URL): Promise<string | null> {
    const response = await this.#visit(url, '*/*', ASSET_BYTES)
    if (response === null) return null
    if (response.status === 404) return `${url.pathname} (status 404)`
    return isPage(response) ? `${url.pathname} (a page)` : null
  }

  #assetRemedy(): string {
    const { kind, isFiles } = this.#options
    if (isFiles) return 'Check what the build writes, and the base path that it is given.'
    return /django/i.test(kind)
      ? 'Django serves them itself only while DEBUG is True: set STATIC_ROOT and add WhiteNoise, or serve them otherwise.'
      : 'Check that the build makes them, and that the app serves them.'
  }

  async #visit({ pathname, search }: URL, accept: string, wanted: number): Promise<PageResponse | null> {
    const { visit, signal } = this.#options
    if (signal.aborted) return null
    try {
      return await visit({ target: `${pathname}${search}`, accept, wanted }, signal)
    } catch (error) {
      this.notes.push(`GET ${pathname} could not be asked: ${messageOf(error)}`)
      return null
    }
  }
}

/** Reports whether a status is wrong for a page. One for programs alone may well be missing. */
function isWrong(response: PageResponse): boolean {
  const { status } = response
  if (status < 400 || status === 401) return false
  return status === 403 || status === 404 || status === 405 ? isPage(response) : true
}

function missingText({ pathname }: URL, missing: readonly string[]): string {
  const named = missing.slice(0, NAMED).join(', ')
  const more = missing.length > NAMED ? ` and ${missing.length - NAMED} more` : ''
  return `The page ${pathname} asks for scripts or styles that are not there: ${named}${more}.`
}

/** Reports whether a host name is that of this machine, and so may be one of berth's. */
const isLoopback = (hostname: string): boolean =>
  /^(?:(?:.+\.)?localhost|127(?:\.\d+){3}|\[::1\])$/.test(hostname)

/** An app that has come up. */
interface AppThatIsUp {
  readonly plan: AppPlan
  /** What responds for it. */
  readonly upstream: Upstream
  /** Its own URL, whether it is public or not. */
  readonly url: string
  /** First label of its other host name, `SLUG.localhost`; null for none. */
  readonly slug: string | null
  readonly log: AppLog
}

/**
 * Asks an app for its pages, and logs and returns what is wrong with them.
 *
 * @param signal ends that early
 */
export async function findWarnings(
  { plan, upstream, url, slug, log }: AppThatIsUp,
  signal: AbortSignal,
): Promise<string[]> {
  const visit = visitorOf(upstream, new URL(url).host)
  if (visit === null) return []
  const { health, kind, start } = plan
  const isFiles = start.kind === 'files'
  const { warnings, notes } = await checkPages({ visit, url, slug, health, kind, isFiles, signal })
  for (const note of notes) log.append('berth', note)
  for (const warning of warnings) log.append('berth', `Warning: ${warning}`)
  return [...warnings]
}
