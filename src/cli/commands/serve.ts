import { type ReadyInfo, startBerth } from '../../berth.ts'
import { selfCommand } from '../../compute/self.ts'
import { type Isolation, loadConfig } from '../../config.ts'
import { createLogger } from '../../runtime/logger.ts'
import { facts, paint } from '../output.ts'
import { printLog, printNow, type Terminal } from '../terminal.ts'
import { versionInfo } from '../version.ts'

const ISOLATION_MEANS: Record<Isolation, string> = {
  bubblewrap: 'each server has its own files, users and processes; the network is shared',
  landlock: "each server reaches its own files only; processes and network are the machine's",
  none: 'NOT isolated: commands run with your rights on your files',
}

/** Stands in place of the first key where that was deleted. */
const NO_KEY = 'the first one was deleted. Start once with --api-key sk_live_… to keep another here'

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
  const berth = await startBerth(config, {
    version: versionInfo().version,
    logger: createLogger(config.logLevel, printLog, Date.now),
    sinceStartMs: () => performance.now(),
    self: selfCommand(process.execPath, Bun.main),
    path: env.PATH ?? '',
    environment: env,
  })
  signal.lastWords = () => berth.abandon()
  try {
    if (config.json) printNow(JSON.stringify({ event: 'ready', ...berth.info }))
    else await greet(berth.info, terminal, signal)
    await signal.arrived
    if (stderr.isTTY) await stderr.write('\nberth: stopping; once more to exit at once\n')
  } finally {
    await berth.stop()
  }
  return 0
}

async function greet(ready: ReadyInfo, terminal: Terminal, signal: StopSignal): Promise<void> {
  // Only where there is a terminal: elsewhere the signal may be ignored on purpose (nohup).
  if (terminal.stdout.isTTY) signal.heedHangUp()
  await terminal.stdout.write(banner(ready, terminal))
}

/** The signals that end the service. */
interface StopSignal {
  readonly arrived: Promise<void>
  /** Is called when a second one ends the process on the spot. */
  lastWords: () => void
  /** Lets the end of the terminal count as well. */
  heedHangUp(): void
}

/** Listens for SIGINT and SIGTERM. The second signal ends the process on the spot. */
function stopSignal(): StopSignal {
  const { promise: arrived, resolve } = Promise.withResolvers<void>()
  let given = false
  const signal: StopSignal = {
    arrived,
    lastWords: () => {},
    heedHangUp: () => void process.on('SIGHUP', onSignal),
  }
  const onSignal = () => {
    if (given) {
      signal.lastWords()
      process.exit(0)
    }
    given = true
    resolve()
  }
  process.on('SIGINT', onSignal)
  process.on('SIGTERM', onSignal)
  return signal
}

function banner(ready: ReadyInfo, { stdout }: Terminal): string {
  const { version, base_url, docs_url, api_key, data_dir, isolation } = ready
  const lines = facts(stdout, [
    ['API', base_url],
    ['Docs', docs_url],
    ['API key', api_key ?? NO_KEY],
    ['Data', data_dir],
    ['Isolation', `${isolation}: ${ISOLATION_MEANS[isolation]}`],
  ])
  return [
    `${paint(stdout, 'bold', `berth ${version}`)} is ready after ${Math.round(ready.started_in_ms)} ms.\n\n`,
    lines.replace(/^/gm, '  ').trimEnd(),
    '\n\n  Provision a server:\n',
    `    curl -X POST ${base_url}/servers -H 'Authorization: Bearer ${api_key ?? 'sk_live_…'}'\n\n`,
    '  Stop with Ctrl-C.\n',
  ].join('')
}
