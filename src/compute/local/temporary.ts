/**
 * Names for files that are written before they take another's place. They are fixed in length, so
 * that the longest name can be replaced too, and recognisable, so that one a killed berth left is
 * neither listed nor kept for ever. The first part tells the process that wrote it: where that is not this one,
 * nobody is writing any more, because a data directory has one berth at a time.
 */
const PATTERN = /^\.berth-([0-9a-z]+)-[0-9a-f]{16}\.tmp$/

/** A fresh name that nothing in the sandbox can guess and occupy. */
export function temporaryName(): string {
  return `.berth-${processMark()}-${Buffer.from(crypto.getRandomValues(new Uint8Array(8))).toString('hex')}.tmp`
}

/** Whether a name is of this kind: such files are not the user's. */
export function isTemporary(name: string): boolean {
  return PATTERN.test(name)
}

/** Whether a name is of this kind and was made by a process that is gone. */
export function isStale(name: string): boolean {
  const mark = PATTERN.exec(name)?.[1]
  return mark !== undefined && mark !== processMark()
}

/** The moment this process started, which no later process shares (its pid may come again in a container). */
function processMark(): string {
  return Math.floor(performance.timeOrigin).toString(36)
}
