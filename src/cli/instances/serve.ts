import { existsSync } from 'node:fs'
import { dirname } from 'node:path'
import { loadConfig } from '../../config/load.ts'
import { StartStopped } from '../../instance/start.ts'
import type { Console } from '../console/console.ts'
import { listenForStopSignal } from '../interrupt.ts'
import { type ProcessContext, printLog } from '../process-context.ts'
import { registerWhenRecovered, startInstance } from './start.ts'

/**
 * Runs the service until a signal ends it. Resolves to the exit code.
 *
 * @param flags options on the command line, by name
 * @throws UsageError, StartupError if it cannot start
 */
export async function runService(flags: Record<string, unknown>, context: ProcessContext): Promise<number> {
  const { env, cwd, stderr } = context
  const config = loadConfig({ flags, env, cwd })
  const isNew = !config.ephemeral && !existsSync(config.dataDir)
  const signal = listenForStopSignal()
  const starting = startInstance(config, context, { log: printLog, stopRequested: signal.received })
  const berth = await starting.catch((error) => {
    if (error instanceof StartStopped) return null
    throw error
  })
  if (berth === null) return 0
  signal.onForcedExit = () => berth.abandon()
  let shown: Console | null = null
  const unregister = registerWhenRecovered(berth, 'serve', context)
  try {
    // Only with a terminal: otherwise the signal may be ignored on purpose (nohup).
    const isConsole = !config.json && context.stdout.isTTY
    if (isConsole) signal.handleHangup()
    const { printReady } = await import('../banner.ts')
    await printReady(config.json, berth.info, context, {
      stop:
        isConsole && context.stdin.isTTY
          ? 'Stop with q or Ctrl-C; ? lists the other keys.'
          : 'Stop with Ctrl-C.',
      network: berth.selected.network,
    })
    if (isNew && !config.json) await noteParentDirectory(berth.info.data_dir, context)
    if (isConsole) {
      const { openConsole } = await import('../console/console.ts')
      const { base_url: baseUrl, admin_token: adminToken } = berth.info
      const instance = { baseUrl, adminToken, isKept: !config.ephemeral }
      shown = openConsole(instance, context, () => process.kill(process.pid, 'SIGINT'))
    }
    await signal.received
    await shown?.close()
    if (stderr.isTTY) await stderr.write('\nberth: stopping; once more to exit at once\n')
  } finally {
    await berth.stop()
    unregister()
  }
  return 0
}

/** Says that there is a data directory above a new one, in which commands were at home until now. */
async function noteParentDirectory(dataDir: string, { stderr }: ProcessContext): Promise<void> {
  const { findDataDirectory } = await import('../find-instance.ts')
  const above = findDataDirectory(undefined, {}, dirname(dirname(dataDir)))
  if (above === dataDir || !existsSync(above)) return
  await stderr.write(
    `berth: ${dataDir} is new; ${above} is left alone. To go on with that one: berth serve --data ${above}\n`,
  )
}
