import { openLibc } from '../../compute/sandboxd/libc.ts'
import { loadConfig } from '../../config/load.ts'
import { UsageError } from '../../errors.ts'
import type { ReadyInfo } from '../../instance/start.ts'
import { parseServeFlags } from '../commands/serve-flags.ts'
import { listenForStopSignal } from '../commands/stop-signal.ts'
import { type ProcessContext, printLog, writeLineSync } from '../process-context.ts'
import { InstanceLogFile } from './log-file.ts'
import { registerInstance } from './registry.ts'
import { startInstance } from './start.ts'

/** What an instance in the background writes to the process that started it. */
export interface BackgroundReady {
  /** What the instance says of itself. */
  ready: ReadyInfo
  /** The file of its log. */
  log: string
}

/**
 * The hidden command that `serve --detach` starts: runs the service as `serve` does, in a session of its own. Until it
 * is ready it speaks to who started it: one line on stdout when all is there, recovery included, and failures on stderr.
 * From then on all goes to the log in the data directory.
 */
export async function background(args: readonly string[], context: ProcessContext): Promise<number> {
  const { env, cwd } = context
  const flags = parseServeFlags(args)
  if (flags === null) throw new UsageError('Start it with "berth serve --detach".')
  const config = loadConfig({ flags, env, cwd })
  const signal = listenForStopSignal()
  const log = new InstanceLogFile()
  let write = (line: string): void => {
    printLog(line)
    log.write(line)
  }
  const berth = await startInstance(config, context, { log: (line) => write(line) })
  signal.onForcedExit = () => berth.abandon()
  let unlist = () => {}
  try {
    await berth.recovered
    const { fd, path } = log.open(berth.info.data_dir)
    unlist = registerInstance(berth.info, 'serve --detach', env)
    const report: BackgroundReady = { ready: berth.info, log: path }
    write = log.write
    try {
      writeLineSync(JSON.stringify(report))
    } catch {
      // Who started it was killed meanwhile: it runs as was asked.
    }
    redirectOutput(fd)
    await signal.received
  } finally {
    await berth.stop()
    unlist()
  }
  return 0
}

/**
 * Sends what this process prints from now on to a file: its fatal errors too, which the runtime itself writes.
 *
 * @param fd open for writing
 */
function redirectOutput(fd: number): void {
  const { dup2 } = openLibc({ dup2: { args: ['int', 'int'], returns: 'int' } })
  for (const stream of [1, 2]) dup2(fd, stream)
}
