import { loadConfig } from '../../config/load.ts'
import { StartStopped } from '../../instance/start.ts'
import { listed, startInstance } from '../instances/start.ts'
import { printLog, type Terminal } from '../terminal.ts'
import { printReady } from './banner.ts'
import { stopSignal } from './stop-signal.ts'

/**
 * Runs the service until a signal ends it; resolves to the exit code.
 *
 * @param flags the options given on the command line, by name
 * @throws UsageError, StartupError where it cannot start
 */
export async function serve(flags: Record<string, unknown>, terminal: Terminal): Promise<number> {
  const { env, cwd, stderr } = terminal
  const config = loadConfig({ flags, env, cwd })
  const signal = stopSignal()
  const starting = startInstance(config, terminal, { log: printLog, stopRequested: signal.arrived })
  const berth = await starting.catch((error) => {
    if (error instanceof StartStopped) return null
    throw error
  })
  if (berth === null) return 0
  signal.lastWords = () => berth.abandon()
  const unlist = listed(berth, 'serve', terminal)
  try {
    // Only where there is a terminal: elsewhere the signal may be ignored on purpose (nohup).
    if (!config.json && terminal.stdout.isTTY) signal.heedHangUp()
    await printReady(config.json, berth.info, terminal, { stop: 'Stop with Ctrl-C.' })
    await signal.arrived
    if (stderr.isTTY) await stderr.write('\nberth: stopping; once more to exit at once\n')
  } finally {
    await berth.stop()
    unlist()
  }
  return 0
}
