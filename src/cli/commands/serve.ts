import { loadConfig } from '../../config/load.ts'
import { StartStopped } from '../../instance/start.ts'
import { registerWhenRecovered, startInstance } from '../instances/start.ts'
import { type ProcessContext, printLog } from '../process-context.ts'
import { printReady } from './banner.ts'
import { listenForStopSignal } from './stop-signal.ts'

/**
 * Runs the service until a signal ends it. Resolves to the exit code.
 *
 * @param flags options on the command line, by name
 * @throws UsageError, StartupError if it cannot start
 */
export async function serve(flags: Record<string, unknown>, context: ProcessContext): Promise<number> {
  const { env, cwd, stderr } = context
  const config = loadConfig({ flags, env, cwd })
  const signal = listenForStopSignal()
  const starting = startInstance(config, context, { log: printLog, stopRequested: signal.received })
  const berth = await starting.catch((error) => {
    if (error instanceof StartStopped) return null
    throw error
  })
  if (berth === null) return 0
  signal.onForcedExit = () => berth.abandon()
  const unregister = registerWhenRecovered(berth, 'serve', context)
  try {
    // Only with a terminal: otherwise the signal may be ignored on purpose (nohup).
    if (!config.json && context.stdout.isTTY) signal.handleHangup()
    await printReady(config.json, berth.info, context, {
      stop: 'Stop with Ctrl-C.',
      network: berth.network,
    })
    await signal.received
    if (stderr.isTTY) await stderr.write('\nberth: stopping; once more to exit at once\n')
  } finally {
    await berth.stop()
    unregister()
  }
  return 0
}
