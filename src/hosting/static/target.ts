import { percentDecoded } from '../../runtime/decode.ts'

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
