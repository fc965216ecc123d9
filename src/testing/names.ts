/** Names that the command line and the dashboard know of the control API. Loads nothing. */

/** The kinds of faults inside a server. All but a crash last. */
export const SERVER_FAULT_KINDS = ['crash', 'oom', 'disk_full', 'hang', 'slow_exec', 'network'] as const

/** The kind of a fault inside a server. */
export type ServerFaultKind = (typeof SERVER_FAULT_KINDS)[number]

/** What the state is saved before, as the names of such snapshots begin. */
export type UndoKind = 'before-reset' | 'before-restore'

/** Snapshots of one kind that are kept, the newest ones. */
export const KEPT_UNDOS = 5

const UNDO_NAME = /^(before-reset|before-restore)(?:-([1-9]\d*))?$/

/** Reports whether a snapshot has the name of one that was saved to undo a reset or a restore. */
export const isUndoName = (name: string): boolean => UNDO_NAME.test(name)

/**
 * Returns the name for the next snapshot of a kind, which no other has (`before-reset`, then `before-reset-2`), and
 * those that are too many once it is saved, oldest first.
 *
 * @param all names of all snapshots
 */
export function nextUndo(
  kind: UndoKind,
  all: readonly string[],
): { readonly name: string; readonly surplus: readonly string[] } {
  const taken = all
    .flatMap((name) => {
      const [, of, number = '1'] = UNDO_NAME.exec(name) ?? []
      return of === kind ? [{ name, number: Number(number) }] : []
    })
    .sort((a, b) => a.number - b.number)
  const last = taken.at(-1)
  return {
    name: last === undefined ? kind : `${kind}-${last.number + 1}`,
    surplus: taken.slice(0, Math.max(0, taken.length + 1 - KEPT_UNDOS)).map(({ name }) => name),
  }
}

/** Beginning of the message if the state cannot be saved before it is replaced. Nothing has changed then. */
export const NOT_SAVED = 'The state cannot be saved first'
