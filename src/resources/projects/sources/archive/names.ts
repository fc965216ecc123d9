import { quoted, SourceError } from '../errors.ts'

/** Linux: NAME_MAX; and a bound for paths that leaves room for the folders above. */
const MAX_NAME_BYTES = 255
const MAX_PATH_BYTES = 1024

/**
 * What programs put into archives beside the code. A `.git` folder would bring hooks and settings that git obeys on
 * the next command in the project.
 */
const LEFT_OUT = /^(?:__MACOSX|\.DS_Store|\.git)$/i

/**
 * Takes an entry's name apart. A name that could mean a place outside the folder that the archive is unpacked to, or
 * something else on another system, is refused and never bent into shape.
 *
 * @param name as the archive has it, with `/`
 * @returns the names from the top down; none for the archive's own folder, null for an entry that is left out
 * @throws SourceError that names the entry
 */
export function parseName(name: string): string[] | null {
  const refuse = (why: string): never => {
    throw new SourceError(`Its entry ${quoted(name)} ${why}.`)
  }
  if (name.includes('\0')) refuse('has a NUL byte in its name')
  if (name.includes('\uFFFD') || !name.isWellFormed()) refuse('has a name that is not UTF-8')
  if (name.includes('\\')) refuse('has a backslash in its name')
  if (name.startsWith('/') || /^[a-z]:/i.test(name)) refuse('has an absolute path')
  if (Buffer.byteLength(name) > MAX_PATH_BYTES) refuse(`has a path of more than ${MAX_PATH_BYTES} bytes`)
  const names = name.split('/').filter((part) => part !== '' && part !== '.')
  if (names.includes('..')) refuse('leads out of the archive')
  if (names.some((part) => Buffer.byteLength(part) > MAX_NAME_BYTES)) {
    refuse(`has a name of more than ${MAX_NAME_BYTES} bytes`)
  }
  return names.some((part) => LEFT_OUT.test(part)) ? null : names
}
