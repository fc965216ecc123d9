import { copyFileSync, existsSync, statSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { BerthError, StartupError } from '../errors.ts'
import type { ClockState } from '../runtime/clock.ts'
import { StateSwap, stateEntries } from '../storage/state.ts'
import { Snapshots } from '../testing/testing.ts'

/** What the copy takes from the data directory of the snapshot: its state is encrypted under them, and reached by them. */
const KEYS = ['master.key', 'credentials.json']

/**
 * Fills a data directory that holds no state with a copy of a snapshot, whole or not at all, and with the keys of the data
 * directory that the snapshot is in.
 *
 * @param path the data directory, which this process holds
 * @param snapshot the directory of the snapshot: `snapshots/NAME` in a data directory
 * @returns the clock of the snapshot
 * @throws StartupError if there is no such snapshot, this berth cannot read it, or the data directory holds a state
 */
export async function startFromSnapshot(path: string, snapshot: string): Promise<ClockState> {
  const owner = dirname(dirname(snapshot))
  if (!existsSync(join(snapshot, 'snapshot.json')))
    throw new StartupError(
      `${snapshot} is not a snapshot. Name its directory: snapshots/NAME in the data directory of the instance that saved it.`,
    )
  if (basename(dirname(snapshot)) !== 'snapshots')
    throw new StartupError(
      `${snapshot} is a copy of a snapshot without the files that it needs from its data directory: ${KEYS.join(' and ')}. Copy them into a directory, move the snapshot to snapshots/NAME in it, and name it there.`,
    )
  if (holdsState(path))
    throw new StartupError(
      `The data directory ${path} is in use already: only an empty one starts from a snapshot. Leave out --snapshot to go on there, or choose another directory with --data, or --ephemeral.`,
    )
  const swap = new StateSwap(path)
  try {
    const { clock } = await new Snapshots(owner).copyTo(basename(snapshot), swap.staging)
    for (const name of KEYS)
      if (existsSync(join(owner, name))) copyFileSync(join(owner, name), join(path, name))
    swap.ready()
    swap.commit()
    return clock
  } catch (error) {
    throw error instanceof BerthError ? new StartupError(error.message) : error
  } finally {
    await swap.clear()
  }
}

/** Reports whether anything was written here: a directory that was only taken has an empty database. */
const holdsState = (path: string): boolean =>
  stateEntries(path).some((name) => name !== 'berth.db' || statSync(join(path, name)).size > 0)
