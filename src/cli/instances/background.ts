import { readdirSync, readlinkSync } from 'node:fs'
import { loadConfig } from '../../config/load.ts'
import type { ReadyInfo } from '../../instance/start.ts'
import { ifPresent } from '../../runtime/if-present.ts'
import { openLibc } from '../../system/libc.ts'
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
    const report: BackgroundReady = { ready: berth.info, log: path, network: berth.network }
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

/** Closes a file descriptor when another program is started (open(2)). */
const O_CLOEXEC = 0o2000000

/**
 * Redirects the output of this process to a file, including fatal errors that the runtime prints. The process that waits
 * for the end of the output then sees it.
 *
 * @param fd file descriptor that is open for writing
 */
function redirectOutput(fd: number): void {
  const { dup2 } = openLibc({ dup2: { args: ['int', 'int'], returns: 'int' } })
  // Bun duplicates the descriptors once a module asks for `process.stdout` or `process.stderr`.
  const copies = outputCopies()
  for (const stream of [1, 2]) dup2(fd, stream)
  if (copies.length === 0) return
  const { dup3 } = openLibc({ dup3: { args: ['int', 'int', 'int'], returns: 'int' } })
  for (const copy of copies) dup3(fd, copy, O_CLOEXEC)
}

/** Returns the other descriptors of the pipes that are the output of this process. */
function outputCopies(): number[] {
  const fileOf = (name: string | number): string =>
    ifPresent(() => readlinkSync(`/proc/self/fd/${name}`)) ?? ''
  const outputs = [fileOf(1), fileOf(2)].filter((file) => /^(?:socket|pipe):/.test(file))
  const all = ifPresent(() => readdirSync('/proc/self/fd')) ?? []
  return all.filter((name) => Number(name) > 2 && outputs.includes(fileOf(name))).map(Number)
}
