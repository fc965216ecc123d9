import { BerthError } from '../../errors.ts'
import { messageOf } from '../../runtime/error-info.ts'
import { isDiskFull, MAKE_ROOM } from '../../storage/disk-full.ts'
import type { Snapshots } from './snapshots.ts'
import { NOT_SAVED, nextUndo, type UndoKind } from './undo-names.ts'

/**
 * Saves the state under a name of its own before it is replaced, and removes the oldest snapshots of that kind.
 *
 * @param save keeps the state under a name
 * @param spared a snapshot that stays, because it is about to be restored
 * @returns the name
 * @throws BerthError whose message begins with `NOT_SAVED`
 */
export async function saveUndo(
  kind: UndoKind,
  snapshots: Snapshots,
  save: (name: string) => Promise<unknown>,
  spared?: string,
): Promise<string> {
  try {
    const all = snapshots.list().map((one) => one.name)
    const { name, surplus } = nextUndo(kind, all)
    await save(name)
    for (const old of surplus) if (old !== spared) await snapshots.remove(old)
    return name
  } catch (error) {
    if (error instanceof BerthError && error.code === 'service_unavailable') throw error
    const reason = isDiskFull(error)
      ? `the disk that holds berth's data directory is full. ${MAKE_ROOM}`
      : messageOf(error)
    throw new BerthError('internal_error', `${NOT_SAVED}: ${reason}`, { cause: error })
  }
}
