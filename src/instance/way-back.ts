import { join } from 'node:path'
import { shellQuote } from '../runtime/shell-quote.ts'
import { Snapshots } from '../testing/snapshots/snapshots.ts'

/**
 * Returns how to go on without the database of a data directory, in a sentence: with the newest snapshot there.
 *
 * @param path the data directory
 */
export function wayBack(path: string): string {
  const [newest] = new Snapshots(path).list()
  if (newest === undefined) return `${join(path, 'snapshots')} has no snapshot to go back to.`
  const command = shellQuote(['berth', 'serve', '--snapshot', join(path, 'snapshots', newest.name)])
  return `The newest snapshot, of ${newest.created_at}, goes on in a new directory: ${command} --data NEW.`
}
