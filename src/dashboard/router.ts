import { computed, type ReadonlySignal, type Signal, signal } from '@preact/signals'
import type { ComponentType } from 'preact'
import { percentDecoded } from '../runtime/decode.ts'

/** Where the browser's address has the path of a screen. */
export interface Address {
  /** Returns the path, and the query with its `?` or empty. */
  read(): { readonly path: string; readonly search: string }
  /** Returns the address, relative to the present one, that has a path with its query. */
  write(to: string): string
}

/** The address itself. */
const PAGE_ADDRESS: Address = {
  read: () => ({ path: location.pathname, search: location.search }),
  write: (to) => to,
}

/** The part behind the `#`, for a page that is a file. */
export const HASH_ADDRESS: Address = {
  read() {
    const [path = '', query] = location.hash.slice(1).split('?', 2)
    return { path: path || '/', search: query === undefined ? '' : `?${query}` }
  },
  write: (to) => `#${to}`,
}

/** Knows which screen the address names, and changes the address without loading the page again. */
export class Router {
  readonly #address: Address
  readonly #path: Signal<string>
  readonly #search: Signal<string>

  #hasMoved = false

  /** Every screen. */
  readonly routes: readonly ScreenRoute[]
  /** The route of the address; null if there is none. */
  readonly match: ReadonlySignal<RouteMatch | null>
  /** The parameters of the address's query. */
  readonly query: ReadonlySignal<URLSearchParams>

  constructor(routes: readonly ScreenRoute[], address: Address = PAGE_ADDRESS) {
    this.routes = routes
    this.#address = address
    const { path, search } = address.read()
    this.#path = signal(path)
    this.#search = signal(search)
    this.match = computed(() => matchRoute(routes, this.#path.value))
    this.query = computed(() => new URLSearchParams(this.#search.value))
  }

  /** The path of the address. */
  get path(): ReadonlySignal<string> {
    return this.#path
  }

  /** Whether another screen was shown before this one since the page was loaded. */
  get hasMoved(): boolean {
    return this.#hasMoved
  }

  /** Follows links of the page, and the browser's buttons. */
  start(): void {
    addEventListener('popstate', () => this.#read())
    document.addEventListener('click', (event) => {
      const link = event.target instanceof Element ? event.target.closest('a') : null
      if (!link || event.defaultPrevented || event.button !== 0 || !isOwn(link)) return
      if (event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return
      event.preventDefault()
      this.go(`${link.pathname}${link.search}`)
    })
  }

  /** Goes to a path of the page, with its query. */
  go(to: string): void {
    history.pushState(null, '', this.#address.write(to))
    this.#read()
    scrollTo(0, 0)
  }

  /** Goes to a path as `go` does, in place of the present one: the browser's button leads to the one before. */
  replace(to: string): void {
    history.replaceState(null, '', this.#address.write(to))
    this.#read()
  }

  /** Sets a parameter of the query, which is where filters and selections are kept; an empty value removes it. */
  setQuery(name: string, value: string): void {
    const query = new URLSearchParams(this.#search.peek())
    if (value === '') query.delete(name)
    else query.set(name, value)
    const search = query.size === 0 ? '' : `?${query}`
    this.replace(`${this.#path.peek()}${search}`)
  }

  #read(): void {
    const { path, search } = this.#address.read()
    this.#hasMoved ||= this.#path.peek() !== path
    this.#path.value = path
    this.#search.value = search
  }
}

/** Reports whether a link leads to a screen of this page. */
const isOwn = (link: HTMLAnchorElement): boolean =>
  link.origin === location.origin &&
  link.target === '' &&
  !link.hasAttribute('download') &&
  (link.pathname === '/' || /^\/dashboard(?:\/|$)/.test(link.pathname)) &&
  !link.pathname.startsWith('/dashboard/assets/')

/** The parameters of a path, decoded, by name. */
type Params = Readonly<Record<string, string>>

/** What a screen is given. */
export interface ScreenProps {
  readonly params: Params
}

/** A path of the page, with the screen that it shows. */
export interface ScreenRoute {
  /** With parameters: `/dashboard/servers/:serverId`. */
  readonly path: string
  /** The title of the window until the screen sets its own. */
  readonly title: string
  /** Whether only the instance's owner may see it. */
  readonly isAdmin?: boolean
  /** Loads the screen's code. */
  readonly load: () => Promise<{ default: ComponentType<ScreenProps> }>
}

/** A route that a path matches. */
interface RouteMatch {
  readonly route: ScreenRoute
  readonly params: Params
}

/** Finds the route of a path: the first that fits, segment by segment. */
export function matchRoute(routes: readonly ScreenRoute[], path: string): RouteMatch | null {
  const given = segmentsOf(path)
  for (const route of routes) {
    const segments = segmentsOf(route.path)
    if (segments.length !== given.length) continue
    const params: Record<string, string> = {}
    const fits = segments.every((segment, index) => {
      const value = given[index] ?? ''
      if (!segment.startsWith(':')) return segment === value
      params[segment.slice(1)] = percentDecoded(value) ?? value
      return value !== ''
    })
    if (fits) return { route, params }
  }
  return null
}

const segmentsOf = (path: string): string[] => path.replace(/\/+$/, '').split('/')
