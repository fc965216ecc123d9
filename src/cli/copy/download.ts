import type { Stats } from 'node:fs'
import { chmod, lstat, mkdir, mkdtemp, open, readdir, rename, rm, stat } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { isGone } from '../../runtime/if-present.ts'
import { shellQuote } from '../../runtime/shell-quote.ts'
import { removeTreeAside } from '../../storage/files.ts'
import { holdsInodes } from '../../system/files.ts'
import { CommandError } from '../errors.ts'
import type { OutputStream } from '../process-context.ts'
import { lastName, meansContent, remotePath } from './place.ts'
import type { CopyProgress } from './progress.ts'
import { lookAt, quotePath, type RemoteEntry, type RemoteShell, runRemote } from './remote.ts'

/** Beginning of the names of what is not complete yet. */
const PARTIAL = '.berth-cp-'

const ALL_PERMISSIONS = 0o700

/**
 * Copies a file or a directory of a server to this machine. Everything has arrived before anything is put in place, and
 * nothing gets outside of the target: no link is followed.
 *
 * @param target absolute path; an existing directory is copied into
 * @param endsWithSlash whether the target names a directory in any case
 * @returns the path that was written
 * @throws CommandError
 */
export async function copyFromServer(
  shell: RemoteShell,
  { source, target, endsWithSlash }: { source: string; target: string; endsWithSlash: boolean },
  progress: CopyProgress,
): Promise<string> {
  const path = remotePath(source)
  const entry = await lookAt(shell, path)
  const present = await stat(target).catch(orNull)
  if (entry.kind === 'directory') {
    if (present !== null && !present.isDirectory())
      throw new CommandError(`${target} is not a directory, and ${source || 'the workspace'} is one.`)
    const isBelow = present !== null && !meansContent(source)
    const directory = isBelow ? join(target, lastName(source)) : target
    await requireDirectory(dirname(directory))
    await downloadDirectory(shell, path, directory, progress)
    return directory
  }
  const { mode, size } = fileOf(source, entry)
  progress.expect(size)
  if (present !== null && endsWithSlash && !present.isDirectory())
    throw new CommandError(`${target} is a file, not a directory.`)
  const file = endsWithSlash || present?.isDirectory() ? join(target, lastName(source)) : target
  // A name that ends with a slash is made, but nothing above it.
  await requireDirectory(dirname(target))
  await downloadFile(readRemote(shell, path, progress), file, mode)
  progress.copied()
  return file
}

/** @throws CommandError if there is no such directory here, which a mistyped target would otherwise make */
async function requireDirectory(path: string): Promise<void> {
  if ((await stat(path).catch(orNull))?.isDirectory()) return
  throw new CommandError(
    `There is no directory ${path} on this machine. Make it first: mkdir -p ${shellQuote([path])}`,
  )
}

/** Writes a file of a server to a stream. @throws CommandError */
export async function streamFromServer(
  shell: RemoteShell,
  source: string,
  out: OutputStream,
  progress: CopyProgress,
): Promise<void> {
  const path = remotePath(source)
  const entry = await lookAt(shell, path)
  if (entry.kind === 'directory') {
    throw new CommandError(
      `${source || 'The workspace'} is a directory. For a tar of it run: berth exec SERVER -- tar c ${source || '.'}`,
    )
  }
  progress.expect(fileOf(source, entry).size)
  for await (const chunk of readRemote(shell, path, progress)) await out.write(chunk)
}

function fileOf(source: string, entry: RemoteEntry): Extract<RemoteEntry, { kind: 'file' }> {
  if (entry.kind === 'file') return entry
  throw new CommandError(
    entry.kind === 'none'
      ? `There is no "${source}" on the server.`
      : `${source} on the server is neither a file nor a directory.`,
  )
}

const readRemote = (shell: RemoteShell, path: string, progress: CopyProgress) =>
  progress.count(runRemote(shell, `exec cat -- ${quotePath(path)}`))

async function downloadFile(chunks: AsyncIterable<Uint8Array>, file: string, mode: number): Promise<void> {
  if ((await lstat(file).catch(orNull))?.isDirectory()) throw new CommandError(`${file} is a directory.`)
  const part = join(dirname(file), `${PARTIAL}${process.pid}`)
  try {
    await mkdir(dirname(file), { recursive: true })
    {
      await using handle = await open(part, 'wx', mode)
      for await (const chunk of chunks) await handle.writeFile(chunk)
      await handle.chmod(mode)
    }
    await rename(part, file)
  } catch (error) {
    throw localFailure(error, file)
  } finally {
    await rm(part, { force: true })
  }
}

async function downloadDirectory(
  shell: RemoteShell,
  path: string,
  directory: string,
  progress: CopyProgress,
): Promise<void> {
  const { loadUnpackTree } = await import('../../compute/trees.ts')
  const { unpackTree } = await loadUnpackTree()
  const isThere = (await stat(directory).catch(orNull)) !== null
  let part: string | null = null
  try {
    // Beside what it is moved to: on the same file system.
    const beside = isThere ? directory : dirname(directory)
    await mkdir(beside, { recursive: true })
    part = await mkdtemp(join(beside, PARTIAL))
    const content = join(part, basename(directory))
    await mkdir(content)
    // GNU tar ends with 1 if a file has changed meanwhile, as a log does.
    const command = `cd ${quotePath(path)} || exit 2; tar -cf - .; [ $? -lt 2 ]`
    const root = { path: content, byDescriptor: holdsInodes }
    await unpackTree(root, runRemote(shell, command), progress)
    if (isThere) await merge(content, directory)
    else await moveDirectory(content, directory, await lstat(content))
  } catch (error) {
    throw localFailure(shell.causeOf(error), directory)
  } finally {
    if (part !== null) await removeTreeAside(part)
  }
}

/** Moves what is in a directory into another one, in place of files and links there. Follows no link below either. */
async function merge(from: string, to: string): Promise<void> {
  for (const name of await readdir(from)) {
    const source = join(from, name)
    const target = join(to, name)
    const stats = await lstat(source)
    const present = await lstat(target).catch(orNull)
    if (!stats.isDirectory()) {
      if (present?.isDirectory())
        throw new CommandError(`${target} is a directory here, and not on the server.`)
      await rename(source, target)
    } else if (present === null) await moveDirectory(source, target, stats)
    else if (!present.isDirectory())
      throw new CommandError(`${target} is not a directory here, and one on the server.`)
    else {
      await chmod(source, stats.mode | ALL_PERMISSIONS)
      await merge(source, target)
      await chmod(target, stats.mode & 0o777)
    }
  }
}

/** Moves a directory, for which its owner needs all permissions on it. */
async function moveDirectory(source: string, target: string, { mode }: Stats): Promise<void> {
  await chmod(source, mode | ALL_PERMISSIONS)
  await rename(source, target)
  await chmod(target, mode & 0o777)
}

function orNull(error: unknown): null {
  if (isGone(error)) return null
  throw error
}

/** Returns the error of a copy that could not be put in place, for a person. */
function localFailure(error: unknown, path: string): unknown {
  if (error instanceof CommandError || !(error instanceof Error)) return error
  if (error.name === 'AbortError') return error
  if ('fault' in error && error.fault === 'disk_full')
    return new CommandError(`The disk of this machine is full: ${path} was not copied.`)
  return new CommandError(`${path} was not copied: ${error.message.replace(/\.$/, '')}.`)
}
