/** One end of a copy: a path of a server, of this machine, or standard input or output (`-`). */
export type CopyPlace =
  | {
      readonly kind: 'server'
      /** As the person names it; empty for the chosen one. */
      readonly server: string
      readonly path: string
    }
  | { readonly kind: 'local'; readonly path: string }
  | { readonly kind: 'stream' }

/**
 * Reads an argument of `berth cp`. The text before the first colon names a server, unless it has a slash, as in scp:
 * a file with a colon in its name is `./a:b`.
 */
export function parsePlace(text: string): CopyPlace {
  if (text === '-') return { kind: 'stream' }
  const colon = text.indexOf(':')
  if (colon === -1 || text.slice(0, colon).includes('/')) return { kind: 'local', path: text }
  return { kind: 'server', server: text.slice(0, colon), path: text.slice(colon + 1) }
}

/** Returns a person's path on a server as the server's shell has it: relative to the home directory, or absolute. */
export function remotePath(path: string): string {
  const inWorkspace = path.replace(/^(?:\/workspace|~)(?:\/+|$)/, '').replace(/(?<=[^/])\/+$/, '')
  return inWorkspace === '' ? '.' : inWorkspace
}

/** Returns a person's path in a directory of a server; undefined means the workspace. */
export const pathIn = (directory: string | undefined, path: string): string =>
  directory === undefined || path.startsWith('/') || path.startsWith('~') ? path : `${directory}/${path}`

/** Returns the last name of a path; an empty text if that is not a name, such as `.` or `/`. */
export function lastName(path: string): string {
  const name = path.replace(/\/+$/, '').split('/').at(-1) ?? ''
  return name === '.' || name === '..' ? '' : name
}

/** Joins a directory's path and a name. */
export const below = (directory: string, name: string): string =>
  directory === '.' ? name : `${directory.replace(/\/+$/, '')}/${name}`

/** Reports whether a path means what is in a directory, not the directory itself: it ends with `/.`, or is `.`. */
export const meansContent = (path: string): boolean => lastName(path) === ''
