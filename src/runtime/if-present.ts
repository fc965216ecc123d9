/**
 * Codes of errno(3) that mean a path leads nowhere anymore: the entry or a directory above it was removed, the
 * process of a /proc path has ended (ESRCH), or the control group of a cgroupfs path is gone (ENODEV).
 */
const GONE: ReadonlySet<unknown> = new Set(['ENOENT', 'ENOTDIR', 'ESRCH', 'ENODEV'])

/**
 * Runs a synchronous file operation on something that another process may remove at any moment, and returns its
 * result, or null if the path leads nowhere. A check beforehand cannot replace it: what was there may be gone by the
 * time of the operation.
 *
 * @throws every other error of the operation
 */
export function ifPresent<T>(operation: () => T): T | null {
  try {
    return operation()
  } catch (error) {
    if (isGone(error)) return null
    throw error
  }
}

/** Reports whether an error of the system says that a path leads nowhere any more. */
export const isGone = (error: unknown): boolean =>
  error instanceof Error && 'code' in error && GONE.has(error.code)
