import type { ReadyInfo } from '../../instance/start.ts'
import { isInUse } from '../../storage/data-directory.ts'
import { Client } from '../client.ts'
import { findBaseUrl, findDataDirectory, findInstance, type InstanceOptions } from '../find-instance.ts'
import { detach } from '../instances/detach.ts'
import { registerWhenRecovered, startAtFreePort } from '../instances/start.ts'
import type { StopSignal } from '../interrupt.ts'
import { type ProcessContext, printLog } from '../process-context.ts'

/** An instance to bring things up on. */
export interface UpInstance {
  readonly api: Client
  readonly control: Client
  /** Ends the instance, if this process has started it for itself; else null. */
  readonly stop: (() => Promise<void>) | null
}

/** How to find or start an instance. */
interface UpInstanceOptions {
  readonly connection: InstanceOptions
  /** The directory of the project's file. */
  readonly root: string
  /** Whether one that is started goes on in the background. */
  readonly isDetached: boolean
  readonly signal: StopSignal
}

/**
 * Finds the instance that runs on the project's directory, or starts one there with the options of its
 * `berth.config.json` and the environment.
 *
 * @returns an exit code if one did not start in the background; the reason is on stderr then
 * @throws CommandError, UsageError, StartupError if there is none and none can be started
 */
export async function findOrStart(
  { connection, root, isDetached, signal }: UpInstanceOptions,
  context: ProcessContext,
): Promise<UpInstance | number> {
  const inRoot = { ...context, cwd: root }
  if (isInstanceRunning(connection, inRoot)) return found(connection, inRoot)
  const flags = { data: findDataDirectory(connection.data, context.env, root) }
  if (isDetached) {
    const exitCode = await detach(flags, inRoot, 'up')
    if (exitCode !== 0) return exitCode
    return found({ ...connection, ...flags }, inRoot)
  }
  const listeners = { log: printLog, stopRequested: signal.received }
  const berth = await startAtFreePort(flags, inRoot, listeners)
  signal.onForcedExit = () => berth.abandon()
  const unregister = registerWhenRecovered(berth, 'up', context)
  await context.stderr.write(`berth ${berth.info.version} runs at ${berth.info.base_url}.\n`)
  return {
    ...clientsOf(berth.info),
    async stop() {
      await berth.stop()
      unregister()
    },
  }
}

/** Reports whether an instance is named, or runs on the directory. One that was killed has left its address there. */
export function isInstanceRunning(connection: InstanceOptions, context: ProcessContext): boolean {
  const { baseUrl, directoryUrl, directory } = findBaseUrl(connection, context)
  return baseUrl !== undefined && (baseUrl !== directoryUrl || isInUse(directory))
}

function found(connection: InstanceOptions, context: ProcessContext): UpInstance {
  return {
    api: new Client(findInstance(connection, context, 'api')),
    control: new Client(findInstance(connection, context, 'control')),
    stop: null,
  }
}

function clientsOf({ base_url: baseUrl, api_key, admin_token }: ReadyInfo): { api: Client; control: Client } {
  const source = 'data directory'
  return {
    api: new Client({ baseUrl, credential: api_key, source }),
    control: new Client({ baseUrl, credential: admin_token, source }),
  }
}
