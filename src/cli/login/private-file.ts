import {
  closeSync,
  constants,
  fchmodSync,
  fstatSync,
  lstatSync,
  openSync,
  readFileSync,
  realpathSync,
  type Stats,
  statSync,
} from 'node:fs'
import { dirname } from 'node:path'
import { codeOf, messageOf } from '../../runtime/error-info.ts'
import { ifPresent } from '../../runtime/if-present.ts'
import { CommandError } from '../errors.ts'

const { O_CREAT, O_NOFOLLOW, O_NONBLOCK, O_RDONLY, O_RDWR } = constants

/**
 * Reads a file that no other user can read or replace. Returns null if there is none. Follows a link to such a file.
 *
 * @throws CommandError if other users can read, write or replace it, or it cannot be read
 */
export function readPrivateFile(path: string): string | null {
  let file: number
  try {
    // O_NONBLOCK: opening a pipe would block.
    file = openSync(path, O_RDONLY | O_NONBLOCK)
  } catch (error) {
    const code = codeOf(error)
    if (code === 'ENOENT' || code === 'ENOTDIR') return null
    throw new CommandError(`${path} cannot be read: ${messageOf(error)}. Fix its permissions.`)
  }
  try {
    return ifPresent(() => {
      checkFile(path, fstatSync(file))
      checkPrivateDirectory(dirname(path))
      checkPrivateDirectory(dirname(realpathSync(path)))
      return readFileSync(file, 'utf8')
    })
  } finally {
    closeSync(file)
  }
}

/**
 * Refuses a directory whose files other users can replace.
 *
 * @throws CommandError
 */
export function checkPrivateDirectory(directory: string): void {
  const stats = statSync(directory)
  if (isForeign(stats)) {
    throw refusalError(
      directory,
      `belongs to another user (${stats.uid}), and so keys in it are not used`,
      FOREIGN,
    )
  }
  if ((stats.mode & 0o022) !== 0) {
    const problem = `can be written by other users (${modeOf(stats)}), and so keys in it are not used`
    throw refusalError(directory, problem, `Run: chmod 700 ${directory}. Look first at what is in it.`)
  }
}

/**
 * Creates a file that other users can neither read nor lock, unless it exists. Does not follow links.
 *
 * @throws CommandError
 */
export function createPrivateFile(path: string): void {
  checkNoLink(path)
  const file = openSync(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK, 0o600)
  try {
    const stats = fstatSync(file)
    if (isForeign(stats)) {
      throw refusalError(path, `belongs to another user (${stats.uid}), and so is not used`, FOREIGN)
    }
    if (isOpenToOthers(stats)) fchmodSync(file, 0o600)
  } finally {
    closeSync(file)
  }
}

/**
 * Refuses a link at the path of a file to write.
 *
 * @throws CommandError
 */
export function checkNoLink(path: string): void {
  if (!isLink(path)) return
  throw new CommandError(
    `${path} is a link to ${targetOf(path)}, and is not used. Remove the link: rm ${path}.`,
  )
}

function checkFile(path: string, stats: Stats): void {
  if (!stats.isFile()) throw refusalError(path, 'is not a file', 'Remove it.')
  if (isForeign(stats)) {
    throw refusalError(path, `belongs to another user (${stats.uid}), and so its keys are not used`, FOREIGN)
  }
  if (isOpenToOthers(stats)) {
    throw refusalError(
      path,
      `is open to other users (${modeOf(stats)}), and so its keys are not used`,
      `Run: chmod 600 ${path}. Where somebody may have read it, sign out and in again.`,
    )
  }
}

const FOREIGN = 'Run berth as that user, remove it, or name another directory with XDG_CONFIG_HOME.'

/**
 * Returns an error with problem and remedy. For a link, the remedy is to remove the link: its target may be needed
 * unchanged.
 */
function refusalError(path: string, problem: string, remedy: string): CommandError {
  const link = [path, dirname(path)].find(isLink)
  if (link === undefined) return new CommandError(`${path} ${problem}. ${remedy}`)
  const led = link === path ? `${path} is a link to` : `${path}, by the link ${link}, is`
  return new CommandError(
    `${led} ${targetOf(path)}, which ${problem}. Remove the link: rm ${link}. Or have it lead to what you alone can read and write.`,
  )
}

/** Reports whether a file belongs to neither this user nor root, who can read everything. */
const isForeign = ({ uid }: Stats): boolean => uid !== 0 && uid !== process.getuid?.()

const isOpenToOthers = ({ mode }: Stats): boolean => (mode & 0o077) !== 0

const modeOf = ({ mode }: Stats): string => `mode ${(mode & 0o777).toString(8).padStart(4, '0')}`

const isLink = (path: string): boolean =>
  lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() === true

function targetOf(path: string): string {
  try {
    return realpathSync(path)
  } catch {
    // A link that leads nowhere.
    return 'nothing'
  }
}
