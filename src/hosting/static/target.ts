/** The target of a request as a file of a site. */
export interface Target {
  /** Names from the site's folder down, decoded. */
  readonly names: readonly string[]
  /** It ends in `/`: a folder is meant. */
  readonly isDirectory: boolean
}

/** A folder beginning with a dot that is meant for the web (RFC 8615). */
const WELL_KNOWN = '.well-known'

/**
 * The file that a target asks for, or null where it can be none: a name that begins with a dot (but for
 * `/.well-known/`), one with a slash hidden in its encoding, a backslash or a control character, or no UTF-8.
 */
export function targetOf(target: string): Target | null {
  const parts = pathOf(target).split('/')
  const names: string[] = []
  for (const part of parts) {
    if (part === '') continue
    const name = part.includes('%') ? decode(part) : part
    if (name === null || !isVisible(name, names.length)) return null
    names.push(name)
  }
  return { names, isDirectory: parts.at(-1) === '' }
}

/** The path of a target, encoded, without its query. */
export function pathOf(target: string): string {
  const end = target.search(/[?#]/)
  return end === -1 ? target : target.slice(0, end)
}

function isVisible(name: string, depth: number): boolean {
  if (name.startsWith('.')) return depth === 0 && name === WELL_KNOWN
  return !/[/\\\p{Cc}]/u.test(name)
}

function decode(part: string): string | null {
  try {
    return decodeURIComponent(part)
  } catch {
    return null
  }
}
