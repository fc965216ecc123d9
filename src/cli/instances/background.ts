import { loadConfig } from '../../config/load.ts'
import type { ReadyInfo } from '../../instance/start.ts'
import { redirectOutput } from '../../system/own-descriptors.ts'
import { listenForStopSignal } from '../interrupt.ts'
import { type ProcessContext, printLog, writeLineSync } from '../process-context.ts'
import { InstanceLogFile } from './log-file.ts'
import { registerInstance, type StartedBy } from './registry.ts'
import { type Listeners, startAtFreePort, startInstance } from './start.ts'

/** Report of a background instance to the process that started it. */
export interface BackgroundReady {
  /** Description of the instance. */
  ready: ReadyInfo
  /** Path of its log file. */
  log: string
  /** Whether each server has its own network. */
  network: 'own' | 'shared'
}

/**
 * Runs the service for `serve --detach`, in a session of its own. Until the instance has recovered and is ready, it
 * reports to the process that started it: one line on stdout when it is ready, failures on stderr. After that, all
 * output goes to the log in the data directory.
 *
 * @param flags options on the command line, by name
 */
export async function background(
  startedBy: StartedBy,
  flags: Record<string, unknown>,
  context: ProcessContext,
): Promise<number> {
  const { env, cwd } = context
  const signal = listenForStopSignal()
  const log = new InstanceLogFile()
  let write = (line: string): void => {
    printLog(line)
    log.write(line)
  }
  const listeners: Listeners = { log: (line) => write(line) }
  const berth =
    startedBy === 'up'
      ? await startAtFreePort(flags, context, listeners)
      : await startInstance(loadConfig({ flags, env, cwd }), context, listeners)
  signal.onForcedExit = () => berth.abandon()
  let unregister = () => {}
  try {
    await berth.recovered
    const { fd, path } = log.open(berth.info.data_dir)
    unregister = registerInstance(berth.info, startedBy, env)
    const report: BackgroundReady = { ready: berth.info, log: path, network: berth.selected.network }
    write = log.write
    try {
      writeLineSync(JSON.stringify(report))
    } catch {
      // The process that started it was killed meanwhile. The instance keeps running.
    }
    redirectOutput(fd)
    await signal.received
  } finally {
    await berth.stop()
    unregister()
  }
  return 0
}
