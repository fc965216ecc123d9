import { basename, relative, sep } from 'node:path'
import { GENERATED } from '../../resources/files/manifest.ts'
import { untilInterrupted } from '../interrupt.ts'

/** Milliseconds without a change after which changes are taken together. An editor saves a file in several steps. */
const QUIET_MS = 20

/**
 * Runs a function, and again after each change below a directory, until Ctrl-C. Changes during a run lead to one more.
 *
 * @param isLeftOut reports whether a path, relative to the directory, is of no interest
 * @returns the exit code: 130 after Ctrl-C
 */
export function repeatOnChange(
  directory: string,
  isLeftOut: (path: string) => boolean,
  run: (signal: AbortSignal) => Promise<void>,
): Promise<number> {
  return untilInterrupted(async (signal) => {
    const { watch } = await import('chokidar')
    const watcher = watch(directory, {
      followSymlinks: false,
      ignoreInitial: true,
      ignorePermissionErrors: true,
      ignored: (path) =>
        path !== directory &&
        (GENERATED.has(basename(path)) || isLeftOut(relative(directory, path).split(sep).join('/'))),
    })
    let changed = Promise.withResolvers<void>()
    watcher.on('all', () => changed.resolve())
    signal.addEventListener('abort', () => changed.resolve())
    try {
      const isWatching = new Promise<void>((resolve) => watcher.on('ready', resolve))
      await run(signal)
      await isWatching
      // What changed before the watch began is in no event.
      changed.resolve()
      for (;;) {
        await changed.promise
        changed = Promise.withResolvers()
        await Bun.sleep(QUIET_MS)
        signal.throwIfAborted()
        await run(signal)
      }
    } finally {
      await watcher.close()
    }
  })
}
