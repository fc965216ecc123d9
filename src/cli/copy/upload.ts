import type { Stats } from 'node:fs'
import { lstat, readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { packLocalTree, readContent } from '../directory/pack.ts'
import { CommandError } from '../errors.ts'
import { unreadable } from '../local-file.ts'
import { below, lastName, meansContent, remotePath } from './place.ts'
import type { CopyProgress } from './progress.ts'
import { feedRemote, lookAt, quotePath, type RemoteEntry, type RemoteShell, unpackRemote } from './remote.ts'

/** Permission bits of a file whose content comes from standard input. */
const USUAL_MODE = 0o644

/**
 * Copies a file or a directory of this machine to a server.
 *
 * @param source absolute path; `named` is it as the person has named it
 * @param target path on the server; an existing directory is copied into
 * @returns the path on the server that was written
 * @throws CommandError
 */
export async function copyToServer(
  shell: RemoteShell,
  { source, named, target }: { source: string; named: string; target: string },
  progress: CopyProgress,
): Promise<string> {
  const stats = await stat(source).catch((error) => {
    throw error.code === 'ENOENT'
      ? new CommandError(`There is no "${named}" here.`)
      : unreadable(named, error)
  })
  const path = remotePath(target)
  const entry = await lookAt(shell, path)
  if (stats.isDirectory()) return uploadDirectory(shell, { source, named, path, entry }, progress)
  if (!stats.isFile()) throw new CommandError(`${named} is neither a file nor a directory.`)
  const file = fileTarget(path, target, entry, lastName(source))
  progress.expect(stats.size)
  const content = readContent({ path: source, name: source, size: stats.size })
  await writeRemote(shell, file, stats.mode & 0o777, progress.count(content))
  progress.copied()
  return file
}

/** Copies a stream to a file of a server. @throws CommandError */
export async function streamToServer(
  shell: RemoteShell,
  input: ReadableStream<Uint8Array>,
  target: string,
  progress: CopyProgress,
): Promise<string> {
  const path = remotePath(target)
  const entry = await lookAt(shell, path)
  if (entry.kind === 'directory' || target.endsWith('/'))
    throw new CommandError(`${target || 'The workspace'} is a directory. Name the file to write.`)
  await writeRemote(shell, path, entry.kind === 'file' ? entry.mode : USUAL_MODE, progress.count(input))
  progress.copied()
  return path
}

async function uploadDirectory(
  shell: RemoteShell,
  { source, named, path, entry }: { source: string; named: string; path: string; entry: RemoteEntry },
  progress: CopyProgress,
): Promise<string> {
  if (entry.kind === 'file' || entry.kind === 'other')
    throw new CommandError(`${path} on the server is not a directory, and ${named} is one.`)
  const isBelow = entry.kind === 'directory' && !meansContent(named)
  const directory = isBelow ? below(path, lastName(named)) : path
  void sizeOf(source).then(progress.expect, () => {})
  await unpackRemote(shell, directory, packLocalTree(source, progress))
  return directory
}

/** Returns the size of all files below a directory, in bytes. */
async function sizeOf(directory: string): Promise<number> {
  let bytes = 0
  for (const entry of await readdir(directory, { withFileTypes: true })) {
    const path = join(directory, entry.name)
    if (entry.isDirectory()) bytes += await sizeOf(path)
    else if (entry.isFile()) bytes += (await lstat(path)).size
  }
  return bytes
}

/** Returns the path of a file that is copied to a path. */
function fileTarget(path: string, target: string, { kind }: RemoteEntry, name: string): string {
  if (kind === 'other') throw new CommandError(`${target} on the server is neither a file nor a directory.`)
  if (kind === 'file' && target.endsWith('/'))
    throw new CommandError(`${target} on the server is a file, not a directory.`)
  const isDirectory = kind === 'directory' || target.endsWith('/')
  return isDirectory ? below(path, name) : path
}

/** Writes a file of a server in one step: a reader sees the old content or the new. Makes missing directories. */
async function writeRemote(
  shell: RemoteShell,
  path: string,
  mode: Stats['mode'],
  content: AsyncIterable<Uint8Array>,
): Promise<void> {
  const slash = path.lastIndexOf('/')
  const above = slash > 0 ? path.slice(0, slash) : slash === 0 ? '/' : '.'
  const name = quotePath(path.slice(slash + 1))
  const script = [
    `mkdir -p ${quotePath(above)} && cd ${quotePath(above)} || exit 1`,
    `[ -w . ] || { printf '%s\\n' ${quotePath(`berth: ${path} cannot be written: its directory is not writable`)} >&2; exit 1; }`,
    'part=.berth-cp-$$',
    `trap 'rm -f "$part"' EXIT; trap 'exit 1' HUP INT TERM`,
    `cat > "$part" && chmod ${mode.toString(8)} "$part" && mv -f "$part" ${name}`,
  ]
  await feedRemote(shell, script.join('\n'), content)
}
