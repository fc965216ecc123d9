import { realpathSync } from 'node:fs'
import { relative } from 'node:path'
import type { WatchOptions, WorkspaceWatch } from '../workspace.ts'

/**
 * Tells of changes under a directory of a workspace, which is there and inside it now. Links are not
 * followed, so that what the server plants leads the watch nowhere.
 *
 * chokidar, since systems differ much in what they tell of renames, atomic saves and new directories, and it
 * has met them all; loaded with the first watch.
 */
export async function watchDirectory(
  dir: string,
  { ignored, onChange }: WatchOptions,
): Promise<WorkspaceWatch> {
  const root = realpathSync(dir)
  const { watch } = await import('chokidar')
  const watcher = watch(root, {
    followSymlinks: false,
    ignoreInitial: true,
    ignorePermissionErrors: true,
    // The file is told of when it is there, not while it is moved into place.
    atomic: true,
    ignored: (path) => path !== root && ignored(relative(root, path)),
  })
  const ready = Promise.withResolvers<void>()
  watcher.on('ready', ready.resolve)
  // A limit of the system (inotify): changes are missed, which harms nothing.
  watcher.on('error', () => ready.resolve())
  watcher.on('all', (_event, path) => onChange(relative(root, path)))
  await ready.promise
  return { close: () => watcher.close() }
}
