import { basename, relative, sep } from 'node:path'
import { GENERATED } from '../../resources/files/manifest.ts'
import type { Client } from '../client.ts'
import { CommandError } from '../errors.ts'
import { untilInterrupted } from '../interrupt.ts'
import { printable, timeOfDay } from '../output.ts'
import { toPlainText } from '../plain-text.ts'
import type { OutputStream } from '../process-context.ts'
import { connectionReporter, followStream, retryUntilBack } from '../reconnect.ts'
import { checkReadableDirectory } from './survey.ts'

/** What a watched directory is sent to. */
interface WatchTarget {
  readonly type: 'server' | 'project'
  readonly id: string
}

/** A directory to send again and again. */
interface WatchedDirectory {
  /** Absolute path. */
  readonly directory: string
  /** Reports whether a path, relative to the directory, is not sent. */
  readonly isLeftOut: (path: string) => boolean
  readonly target: WatchTarget
  readonly stderr: OutputStream
  readonly client: Client
  /** Connects to the instance again, which may have a new address after a restart. */
  readonly reconnect: () => Promise<Client>
  /** Sends what has changed, and prints what that led to. */
  readonly send: (client: Client, signal: AbortSignal, isFirst: boolean) => Promise<void>
  /** Whether a failure of the first sending ends the command, since no change here can fix it. */
  readonly mustBegin?: true
}

/**
 * Sends a directory, and again after each change, until Ctrl-C. A failure is printed, and the next change tries again; so
 * does the return of an instance that was unreachable.
 *
 * @returns the exit code: 130 after Ctrl-C
 * @throws CommandError as soon as the target is gone; if there is no directory
 */
export async function sendOnChange(watched: WatchedDirectory): Promise<number> {
  const { directory, isLeftOut, target, stderr, send, mustBegin } = watched
  await checkReadableDirectory(directory)
  const connection = new WatchConnection(watched)
  let isFirst = true
  return repeatOnChange({
    directory,
    isLeftOut,
    meanwhile: (signal) => untilGone(connection, target, signal),
    async run(signal) {
      try {
        await retryUntilBack(() => send(connection.client, signal, isFirst), {
          reconnect: async () => void (await connection.reconnect(signal)),
          report: connection.report,
          signal,
        })
      } catch (error) {
        if (!(error instanceof CommandError)) throw error
        if (error.code === 'not_found' && (await isGone(connection.client, target, signal)))
          throw goneError(target)
        if (isFirst && mustBegin) throw error
        await stderr.write(`${timeOfDay()}  berth: ${toPlainText(error.message)}\n`)
      }
      if (isFirst) await stderr.write(`Watching ${printable(directory)}. Ctrl-C ends it.\n`)
      isFirst = false
    },
  })
}

/** The instance that a directory is sent to. It may be away for a while. */
class WatchConnection {
  /** The client of the last connection. */
  client: Client
  #isLost = false
  readonly #watched: WatchedDirectory

  constructor(watched: WatchedDirectory) {
    this.#watched = watched
    this.client = watched.client
  }

  /** Connects again. @throws CommandError if the instance does not respond */
  async reconnect(signal: AbortSignal): Promise<Client> {
    const client = await this.#watched.reconnect()
    await client.call('control.health', { signal })
    this.client = client
    return client
  }

  /** Prints once that the instance is lost, and why; with null, once that it is back. */
  readonly report = async (reason: string | null): Promise<void> => {
    const isLost = reason !== null
    if (isLost === this.#isLost) return
    this.#isLost = isLost
    await connectionReporter(this.#watched.stderr, timeOfDay)(reason)
  }
}

/** Follows what happens to the target until `signal` aborts. @throws CommandError once the target is gone */
async function untilGone(
  connection: WatchConnection,
  target: WatchTarget,
  signal: AbortSignal,
): Promise<void> {
  const changes = followStream({
    connection: connection.client,
    reconnect: () => connection.reconnect(signal),
    stream: (client) => client.stream('changes.stream', { signal }),
    signal,
  })
  try {
    for await (const one of changes) {
      if (one.type === 'lost') await connection.report(one.reason)
      else if (one.type === 'reconnected') await connection.report(null)
      else {
        const { data } = one.item
        const isMeant = 'id' in data && data.type === target.type && data.id === target.id
        // What happened before the stream began, or was missed, is in no message.
        const isUnknown = data.type === 'ready' || data.type === 'gap'
        if ((isMeant && data.value === null) || (isUnknown && (await isGone(one.connection, target, signal))))
          throw goneError(target)
      }
    }
  } catch (error) {
    if (signal.aborted) return
    if (!(error instanceof CommandError)) throw error
    // Without the stream the next change shows what is wrong. No change is sent with a key that is gone.
    if (error instanceof TargetGoneError || error.code === 'missing_or_invalid_api_key') throw error
  }
}

async function isGone(client: Client, { type, id }: WatchTarget, signal: AbortSignal): Promise<boolean> {
  try {
    if (type === 'server') await client.call('servers.get', { params: { serverId: id }, signal })
    else await client.call('projects.get', { params: { projectId: id }, signal })
    return false
  } catch (error) {
    if (error instanceof CommandError && error.code === 'not_found') return true
    if (error instanceof CommandError) return false
    throw error
  }
}

/** Error: what a directory was sent to is gone. */
class TargetGoneError extends CommandError {}

const goneError = ({ type, id }: WatchTarget): TargetGoneError =>
  new TargetGoneError(
    `The ${type} ${id} is gone: it was deleted, or the instance was reset. The directory is watched no longer.`,
  )

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
