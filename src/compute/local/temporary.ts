/**
 * Names for files that are written before they replace another. They have a fixed length, so a file with the longest
 * possible name can be replaced too. They are recognizable, so a file that a killed berth left is neither listed nor
 * kept. The first part identifies the process: a file of any other process is stale, because a data directory has one
 * berth at a time.
 */
const PATTERN = /^\.berth-([0-9a-z]+)-[0-9a-f]{16}\.tmp$/

/** Returns a fresh name that nothing in the sandbox can guess and occupy. */
export function temporaryName(): string {
  return `.berth-${processMark()}-${Buffer.from(crypto.getRandomValues(new Uint8Array(8))).toString('hex')}.tmp`
}

/** Reports whether a name is of this kind: such files are not the user's. */
export function isTemporary(name: string): boolean {
  return PATTERN.test(name)
}

/** Reports whether a name is of this kind and its process has ended. */
export function isStale(name: string): boolean {
  const mark = PATTERN.exec(name)?.[1]
  return mark !== undefined && mark !== processMark()
}

/** Returns the time at which this process started. Unlike a pid, no later process in a container can share it. */
function processMark(): string {
  return Math.floor(performance.timeOrigin).toString(36)
}
