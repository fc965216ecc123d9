import { basename, relative, sep } from 'node:path'
import { GENERATED } from '../../resources/files/manifest.ts'
import { untilInterrupted } from '../interrupt.ts'

/** Milliseconds without a change after which changes are taken together. An editor saves a file in several steps. */
const QUIET_MS = 20

/** What to repeat, and after which changes. */
interface Repetition {
  /** Absolute path. */
  readonly directory: string
  /** Reports whether a path, relative to the directory, is of no interest. */
  readonly isLeftOut: (path: string) => boolean
  readonly run: (signal: AbortSignal) => Promise<void>
  /** Runs beside it. Its failure ends the repetition, though nothing changes. */
  readonly meanwhile?: (signal: AbortSignal) => Promise<void>
}

/**
 * Runs a function, and again after each change below a directory, until Ctrl-C. Changes during a run lead to one more.
 *
 * @returns the exit code: 130 after Ctrl-C
 * @throws what `run` and `meanwhile` throw
 */
export function repeatOnChange({ directory, isLeftOut, run, meanwhile }: Repetition): Promise<number> {
  return untilInterrupted(async (interrupted) => {
    const { watch } = await import('chokidar')
    const watcher = watch(directory, {
      followSymlinks: false,
      ignoreInitial: true,
      ignorePermissionErrors: true,
      ignored: (path) =>
        path !== directory &&
        (GENERATED.has(basename(path)) || isLeftOut(relative(directory, path).split(sep).join('/'))),
    })
    const ended = new AbortController()
    const signal = AbortSignal.any([interrupted, ended.signal])
    let changed = Promise.withResolvers<void>()
    watcher.on('all', () => changed.resolve())
    signal.addEventListener('abort', () => changed.resolve())
    const failed = Promise.withResolvers<never>()
    // It may fail during a run, before anything waits for it.
    failed.promise.catch(() => {})
    const beside = meanwhile?.(signal).catch(failed.reject)
    try {
      const isWatching = new Promise<void>((resolve) => watcher.on('ready', resolve))
      await run(signal)
      await isWatching
      // What changed before the watch began is in no event.
      changed.resolve()
      for (;;) {
        await Promise.race([failed.promise, changed.promise])
        changed = Promise.withResolvers()
        await Bun.sleep(QUIET_MS)
        signal.throwIfAborted()
        await run(signal)
      }
    } finally {
      ended.abort()
      await Promise.all([watcher.close(), beside])
    }
  })
}
