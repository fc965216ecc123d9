import { realpathSync } from 'node:fs'
import { relative } from 'node:path'
import type { WatchFilter, WatchOptions, WorkspaceWatch } from '../workspace.ts'

/**
 * Reports changes below an existing directory of a workspace. Links are not followed, so nothing the server plants
 * leads the watch outside.
 *
 * Uses chokidar, loaded with the first watch, because systems differ in how they report renames, atomic saves and new
 * directories.
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
    // Reports a file once it is in place, not while it is moved.
    atomic: true,
    ignored: (path) => path !== root && isIgnored(ignored, relative(root, path)),
  })
  const ready = Promise.withResolvers<void>()
  watcher.on('ready', ready.resolve)
  // A limit of the system (inotify): changes are missed, which harms nothing.
  watcher.on('error', () => ready.resolve())
  watcher.on('all', (_event, path) => onChange(relative(root, path)))
  await ready.promise
  return { close: () => watcher.close() }
}

function isIgnored({ names, files, kept }: WatchFilter, path: string): boolean {
  if (kept !== null && (path === kept || path.startsWith(`${kept}/`))) return false
  return path.split('/').some((name) => names.includes(name)) || files.test(path)
}
