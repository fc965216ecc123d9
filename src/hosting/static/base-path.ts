import { percentDecoded } from '../../runtime/decode.ts'
import { assetsOf } from '../page/assets.ts'
import type { Content, Contents } from './content.ts'

/** The path under which a site was built to be served, as names; empty for the root. */
type BaseNames = readonly string[]

const NONE: BaseNames = []

/** Largest index page that is read, in bytes. @bound peer */
const MAX_PAGE = 1024 * 1024

/** Largest number of scripts and styles that are looked for. @bound peer */
const MAX_ASSETS = 20

/** Largest number of names of a base path. @bound peer */
const MAX_DEPTH = 8

/** An address of the site's own, which no other page has. */
const ADDRESS = 'http://site.invalid/'

/**
 * Finds the base path for which a site was built, such as `/my-repo/` of a page for GitHub Pages. It shows in the index
 * page: its scripts and styles are not where it asks for them, but there without the first names of their path.
 */
export class BasePath {
  #known: { readonly etag: string; readonly names: BaseNames } | null = null

  /**
   * @param exists reports whether there is a file or directory
   */
  constructor(
    private readonly contents: Contents,
    private readonly exists: (names: BaseNames) => Promise<boolean>,
  ) {}

  /** Returns the base path that the site's index page shows. @param index that page, which is not read */
  async of({ etag, size }: Content): Promise<BaseNames> {
    if (this.#known?.etag === etag) return this.#known.names
    if (size > MAX_PAGE) return NONE
    const index = await this.contents.find('index.html')
    if (index === null) return NONE
    const page = await new Response(index.body(0, index.size)).text()
    const { names, isComplete } = await this.#find(page)
    // The rest of the build may still be written.
    this.#known = isComplete ? { etag, names } : null
    return names
  }

  /** @returns also whether everything that the page loads of the site is there */
  async #find(page: string): Promise<{ names: BaseNames; isComplete: boolean }> {
    const { base, assets } = assetsOf(page, ADDRESS)
    const own = assets.filter(({ url }) => url.href.startsWith(ADDRESS)).slice(0, MAX_ASSETS)
    const bases: BaseNames[] = []
    let isComplete = true
    for (const { url } of own) {
      const names = targetOf(url.pathname)?.names ?? NONE
      const above = await this.#missingAbove(names)
      if (above === null) isComplete = false
      else if (above.length > 0) bases.push(above)
    }
    if (own.length === 0 && base.href.startsWith(ADDRESS))
      bases.push(targetOf(base.pathname.replace(/[^/]*$/, ''))?.names ?? NONE)
    const [first = NONE, ...others] = bases
    const isOne = first.length > 0 && others.every((other) => Bun.deepEquals(other, first))
    return { names: isOne && !(await this.exists(first)) ? first : NONE, isComplete }
  }

  /** Returns the names without which a path is that of a file: none if it is there, null if nothing makes it one. */
  async #missingAbove(names: BaseNames): Promise<BaseNames | null> {
    for (let depth = 0; depth < Math.min(names.length, MAX_DEPTH + 1); depth += 1) {
      const content = await this.contents.find(names.slice(depth).join('/'))
      content?.dispose()
      if (content !== null) return names.slice(0, depth)
    }
    return null
  }
}

/** The target of a request as a file of a site. */
export interface Target {
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
export function targetOf(target: string): Target | null {
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
export function pathOf(target: string): string {
  const end = target.search(/[?#]/)
  return end === -1 ? target : target.slice(0, end)
}

/** Reports whether a name is served, `depth` directories below the site's. */
export function isVisible(name: string, depth: number): boolean {
  if (name.startsWith('.')) return depth === 0 && name === WELL_KNOWN
  return !/[/\\\p{Cc}]/u.test(name)
}
