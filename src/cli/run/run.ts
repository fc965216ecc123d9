import { realpathSync } from 'node:fs'
import { tmpdir } from 'node:os'
import type { Config, PortRange } from '../../config/config.ts'
import { loadConfig } from '../../config/load.ts'
import { StartupError } from '../../errors.ts'
import { removeAbandoned } from '../../instance/abandoned.ts'
import { type Berth, StartStopped } from '../../instance/start.ts'
import { machineNow } from '../../runtime/clock.ts'
import { codeOf, messageOf } from '../../runtime/error-info.ts'
import { selfCommand } from '../../runtime/self.ts'
import { makeDirectory, removeTemporary } from '../../storage/data-directory.ts'
import { InstanceLogFile } from '../instances/log-file.ts'
import { registerInstance } from '../instances/registry.ts'
import { startInstance } from '../instances/start.ts'
import { variablesOf } from '../instances/variables.ts'
import { type ProcessContext, printLog } from '../process-context.ts'
import { exitCodeOf, findProgram, spawnCommand } from './command.ts'
import { type OwnOptions, readFlags } from './options.ts'
import { CommandProcesses } from './processes.ts'
import type { RunReport } from './report.ts'
import { ignoredSignals, SignalRelay, signalExitCode } from './signals.ts'

/** What to run, and beside what instance. */
interface RunRequest {
  /** Options of `serve` and of `run` itself, by name. */
  readonly flags: Record<string, unknown>
  /** The command and its arguments. */
  readonly command: readonly [string, ...string[]]
}

/**
 * Runs a command together with an instance in this process, and removes the instance afterwards.
 *
 * @returns the command's exit code, 128+n after signal n
 * @throws UsageError, StartupError if berth cannot start; CommandError with exit code 126 or 127 if the command
 * cannot
 */
export async function runBeside({ flags, command }: RunRequest, context: ProcessContext): Promise<number> {
  const { own, serve } = readFlags(flags)
  const program = findProgram(command[0], context)
  const ignored = ignoredSignals()
  const relay = new SignalRelay(ignored)
  const { config, discard, releasePorts } = disposableConfig(serve, own.keep, context)
  const report = await beginReport(own, context, discard)
  const log = new InstanceLogFile()
  const berth = await startInstance(config, context, {
    log(line) {
      log.write(line)
      report?.record.ownLogLine(line)
    },
    stopRequested: relay.firstSignal,
    ...(report === null ? {} : { record: report.record }),
  }).catch((error) => {
    report?.abandon()
    if (error instanceof StartStopped) {
      discard()
      return null
    }
    // The log may explain the failure.
    printLog(log.buffered)
    discard()
    throw error
  })
  if (berth === null) return signalExitCode(relay.received ?? 'SIGTERM')
  const processes = new CommandProcesses()
  let logPath = ''
  let unregister = () => {}
  let code = 1
  let commandCode = 1
  let page: string | null = null
  try {
    logPath = log.open(berth.info.data_dir).path
    report?.record.hide(berth.info.sign_in_url)
    for (const note of config.notes) printLog(`berth: ${note}\n`)
    if (serve.json === true) printLog(`${JSON.stringify({ event: 'ready', ...berth.info })}\n`)
    if (relay.received === null) {
      const env = { ...commandEnvironment(berth, context.inherited), ...processes.variables }
      const child = spawnCommand({ program, command, env, ignored })
      relay.relayTo(child.pid)
      // Registers while the command starts.
      unregister = registerInstance(berth.info, 'run', context.env)
      const isOver = await endsWithin(child.exited, own.timeoutMs)
      if (isOver) code = exitCodeOf(child)
      else {
        printLog(`berth: ${command[0]} did not end within ${own.timeout}, and is ended.\n`)
        await processes.end(child.pid)
        await child.exited
        code = TIMED_OUT
      }
    } else code = signalExitCode(relay.received)
  } finally {
    relay.childExited(() => berth.abandon())
    if (!own.leave) reportLeft(await processes.end(null))
    await report?.commandEnded(code, relay.received !== null, berth.selected)
    await berth.stop()
    unregister()
    releasePorts()
    if (config.ephemeral) removeAbandoned(tmpdir(), machineNow())
    commandCode = code
    // Last, because a file may not be writable and nothing else must be left behind.
    if (report !== null) {
      const { base_url: baseUrl } = berth.info
      ;({ code, page } = await report.end({ command, exitCode: commandCode, baseUrl }))
    }
  }
  if (!config.ephemeral) printLog(`berth: ${berth.info.data_dir} has the data, ${logPath} the log.\n`)
  if (code !== 0 && relay.received === null) {
    const keeps = config.ephemeral ? '"berth run --keep" keeps the instance\'s data and log.' : null
    printLog(failureText({ name: command[0], commandCode, code, page, keeps, errors: log.errors }))
  }
  return code
}

/** Exit code of a command that was ended because of `--timeout`, as of timeout(1). */
const TIMED_OUT = 124

/**
 * Begins the report of the run, if there is one.
 *
 * @param discard removes what was made for the run
 * @throws StartupError if it cannot be written
 */
async function beginReport(
  own: OwnOptions,
  context: ProcessContext,
  discard: () => void,
): Promise<RunReport | null> {
  try {
    const { RunReport } = await import('./report.ts')
    return await RunReport.begin(own, context)
  } catch (error) {
    discard()
    throw error
  }
}

/** Waits for the end of a command. @returns false if the time was over first; null is no limit */
async function endsWithin(exited: Promise<unknown>, ms: number | null): Promise<boolean> {
  if (ms === null) {
    await exited
    return true
  }
  const { promise, resolve } = Promise.withResolvers<boolean>()
  const timer = setTimeout(() => resolve(false), ms)
  const isOver = await Promise.race([exited.then(() => true), promise])
  clearTimeout(timer)
  return isOver
}

/** Names the processes of the command that were still there after its end. */
function reportLeft(left: readonly { pid: number; name: string }[]): void {
  if (left.length === 0) return
  const names = left.map(({ pid, name }) => `${name} (pid ${pid})`).join(', ')
  printLog(`berth: the command had left processes, which were ended: ${names}. "--leave" keeps them.\n`)
}

/** The configuration of an instance for one command. */
interface DisposableConfig {
  config: Config
  /** Removes the directory of an instance that could not start. */
  discard(): void
  /** Frees the reserved ports. */
  releasePorts(): void
}

/**
 * Returns the configuration. Only flags set address and data directory: variables and the config file describe the
 * instance that a person works with.
 */
function disposableConfig(
  options: Record<string, unknown>,
  keep: boolean,
  { env, cwd }: ProcessContext,
): DisposableConfig {
  const kept = keep && options.data === undefined ? makeKeptDirectory() : null
  const flags = {
    host: '127.0.0.1',
    port: '0',
    json: false,
    ephemeral: options.data === undefined,
    ...options,
    ...(kept === null ? {} : { data: kept, ephemeral: false }),
  }
  try {
    const config = loadConfig({ flags, env, cwd })
    const discard = (): void => {
      if (kept !== null) removeTemporary(kept)
    }
    if (options['project-ports'] !== undefined) return { config, discard, releasePorts() {} }
    // With a seed, ports repeat from run to run unless another run is active.
    const { ports, release: releasePorts } = takePortBlock(config.rngSeed === null ? process.pid : 0)
    return { config: { ...config, projectPorts: ports }, discard, releasePorts }
  } catch (error) {
    if (kept !== null) removeTemporary(kept)
    throw error
  }
}

/** Creates a directory that is never removed. Its name differs from the temporary ones, which are. */
const makeKeptDirectory = (): string => realpathSync(makeDirectory(tmpdir(), 'berth-kept-'))

/**
 * Returns the command's environment: that of this process, the variables of the instance, and the executable with which tests start
 * further instances; from source there is none.
 */
function commandEnvironment({ info }: Berth, inherited: ProcessContext['inherited']): typeof inherited {
  const { BERTH_API_KEY, ...variables } = variablesOf(info)
  const { argv, compiled } = selfCommand()
  return {
    ...inherited,
    ...variables,
    BERTH_API_KEY: BERTH_API_KEY ?? undefined,
    BERTH_DATA: info.data_dir,
    ...(compiled ? { BERTH_EXECUTABLE: argv[0] } : {}),
  }
}

/** What the message about a failed run says. */
interface FailedRun {
  readonly name: string
  /** The exit code of the command, and that of the run. */
  readonly commandCode: number
  readonly code: number
  /** Path of the report's page; null if there is none. */
  readonly page: string | null
  /** What keeps more of it; null if everything is kept. */
  readonly keeps: string | null
  /** The last errors that the instance has logged. */
  readonly errors: readonly string[]
}

/** Returns the message for a failed run. */
function failureText({ name, commandCode, code, page, keeps, errors }: FailedRun): string {
  const logged = errors.length === 0 ? '' : `berth: the instance had logged errors:\n${errors.join('')}`
  const ended = commandCode === code ? '' : `, and the run with ${code}`
  const shown = page === null ? '' : ` ${page} shows what happened.`
  return `${logged}berth: ${name} ended with ${commandCode}${ended}.${shown}${keeps === null ? '' : ` ${keeps}`}\n`
}

/*
 * Range and size of the blocks. The range ends below the ephemeral ports, which the kernel may assign to any
 * connection: a project's port has to stay free for it.
 */
const FIRST = 20_000
const END = 32_768
const SIZE = 128

/** Number of blocks: instances that can have one at the same time. */
const BLOCKS = Math.floor((END - FIRST) / SIZE)

/** A block of ports reserved for one instance. */
interface PortBlock {
  readonly ports: PortRange
  /** Frees the block. */
  release(): void
}

/**
 * Reserves a block of ports for the projects of one instance, by listening on its first port. The kernel assigns that
 * port to one process and frees it when the process ends, even by a crash.
 *
 * @param prefer number of the block to try first
 * @throws StartupError if all are reserved, or this process may not listen
 */
function takePortBlock(prefer: number): PortBlock {
  for (let tried = 0; tried < BLOCKS; tried += 1) {
    const first = FIRST + ((prefer + tried) % BLOCKS) * SIZE
    const guard = listenExclusively(first)
    if (guard === null) continue
    return { ports: { first: first + 1, last: first + SIZE - 1 }, release: () => guard.stop(true) }
  }
  throw new StartupError(
    `All blocks of ports from ${FIRST} to ${END - 1} are taken by other instances. Name a range with --project-ports FIRST-LAST.`,
  )
}

/** Listens on a port; returns null if another process does. */
function listenExclusively(port: number): Bun.TCPSocketListener<undefined> | null {
  try {
    const socket = { open: (opened: Bun.Socket<undefined>) => void opened.end(), data() {} }
    const listener = Bun.listen<undefined>({ hostname: '127.0.0.1', port, exclusive: true, socket })
    listener.unref()
    return listener
  } catch (error) {
    if (codeOf(error) === 'EADDRINUSE') return null
    throw new StartupError(
      `No ports can be reserved for projects: ${messageOf(error)}. Allow berth more open files (ulimit -n), or name a range with --project-ports FIRST-LAST.`,
    )
  }
}
