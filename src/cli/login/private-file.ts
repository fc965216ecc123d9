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
import { ifPresent } from '../../runtime/if-present.ts'
import { CommandError } from '../errors.ts'

const { O_CREAT, O_NOFOLLOW, O_NONBLOCK, O_RDONLY, O_RDWR } = constants

/**
 * The text of a file that nobody else can read or have put there; null where there is none. A link is followed to a file
 * that is so.
 *
 * @throws CommandError where others can read or write it, or replace it, or it cannot be read
 */
export function readPrivateFile(path: string): string | null {
  let file: number
  try {
    // A pipe would be waited for.
    file = openSync(path, O_RDONLY | O_NONBLOCK)
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    if (code === 'ENOENT' || code === 'ENOTDIR') return null
    throw new CommandError(`${path} cannot be read: ${message}. Mend its permissions.`)
  }
  try {
    return ifPresent(() => {
      checkFile(path, fstatSync(file))
      checkDirectory(dirname(path))
      checkDirectory(dirname(realpathSync(path)))
      return readFileSync(file, 'utf8')
    })
  } finally {
    closeSync(file)
  }
}

/** Refuses a directory whose files others can replace. @throws CommandError */
export function checkDirectory(directory: string): void {
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

/** Makes a file that others can neither read nor lock, where there is none, and follows no link to it. @throws CommandError */
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

/** Refuses a link in the place of a file that is written. @throws CommandError */
export function checkNoLink(path: string): void {
  if (!isLink(path)) return
  throw new CommandError(
    `${path} is a link to ${targetOf(path)}, and is not used. Remove the link: rm ${path}.`,
  )
}

function checkFile(path: string, stats: Stats): void {
  if (!stats.isFile()) throw refusalError(path, 'is no file', 'Remove it.')
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

/** What is wrong and what helps: of a link to remove that, since what it leads to may be needed as it is. */
function refusalError(path: string, problem: string, remedy: string): CommandError {
  const link = [path, dirname(path)].find(isLink)
  if (link === undefined) return new CommandError(`${path} ${problem}. ${remedy}`)
  const led = link === path ? `${path} is a link to` : `${path}, by the link ${link}, is`
  return new CommandError(
    `${led} ${targetOf(path)}, which ${problem}. Remove the link: rm ${link}. Or have it lead to what you alone can read and write.`,
  )
}

/** Neither this user's nor root's, who can do all things anyway. */
const isForeign = ({ uid }: Stats): boolean => uid !== 0 && uid !== process.getuid?.()

const isOpenToOthers = ({ mode }: Stats): boolean => (mode & 0o077) !== 0

const modeOf = ({ mode }: Stats): string => `mode ${(mode & 0o777).toString(8).padStart(4, '0')}`

const isLink = (path: string): boolean =>
  lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() === true

function targetOf(path: string): string {
  try {
    return realpathSync(path)
  } catch {
    return 'nothing'
  }
}
