import { realpathSync } from 'node:fs'
import { tmpdir } from 'node:os'
import type { Config, PortRange } from '../../config/config.ts'
import { loadConfig } from '../../config/load.ts'
import { StartupError } from '../../errors.ts'
import { removeAbandoned } from '../../instance/abandoned.ts'
import { type Berth, StartStopped } from '../../instance/start.ts'
import { machineNow } from '../../runtime/clock.ts'
import { codeOf, messageOf } from '../../runtime/error-info.ts'
import { makeDirectory, removeTemporary } from '../../storage/data-directory.ts'
import { InstanceLogFile } from '../instances/log-file.ts'
import { registerInstance } from '../instances/registry.ts'
import { startInstance } from '../instances/start.ts'
import { variablesOf } from '../instances/variables.ts'
import { type ProcessContext, printLog } from '../process-context.ts'
import { exitCodeOf, findProgram, spawnCommand } from './command.ts'
import type { Coverage } from './coverage.ts'
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
  const { keep, coverage: coverageFile, json, ...options } = flags
  const program = findProgram(command[0], context)
  const ignored = ignoredSignals()
  const relay = new SignalRelay(ignored)
  const coverage =
    typeof coverageFile === 'string'
      ? (await import('./coverage.ts')).createCoverage(coverageFile, context.cwd)
      : null
  const { config, discard, releasePorts } = disposableConfig(options, keep === true, context)
  const log = new InstanceLogFile()
  const berth = await startInstance(config, context, {
    log: log.write,
    stopRequested: relay.firstSignal,
    ...(coverage === null ? {} : { observe: coverage.observe }),
  }).catch((error) => {
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
  let logPath = ''
  let unregister = () => {}
  let code = 1
  let isWritten = true
  try {
    logPath = log.open(berth.info.data_dir).path
    if (berth.info.isolation === 'none' && config.isolation !== 'none') printLog(NOT_ISOLATED)
    for (const note of config.notes) printLog(`berth: ${note}\n`)
    if (json === true) printLog(`${JSON.stringify({ event: 'ready', ...berth.info })}\n`)
    if (relay.received === null) {
      const child = spawnCommand({ program, command, env: commandEnvironment(berth, context.env), ignored })
      relay.relayTo(child.pid)
      // Registers while the command starts.
      unregister = registerInstance(berth.info, 'run', context.env)
      await child.exited
      code = exitCodeOf(child)
    } else code = signalExitCode(relay.received)
  } finally {
    relay.childExited(() => berth.abandon())
    await berth.stop()
    unregister()
    releasePorts()
    if (config.ephemeral) removeAbandoned(tmpdir(), machineNow())
    // Last, because the file may not be writable and nothing else must be left behind.
    if (coverage) isWritten = await writeCoverage(coverage, command)
  }
  if (!config.ephemeral) printLog(`berth: ${berth.info.data_dir} has the data, ${logPath} the log.\n`)
  else if (code !== 0 && relay.received === null) printLog(failureText(command[0], code, log.errors))
  return code === 0 && !isWritten ? 1 : code
}

/** Said if servers have no isolation, and nobody asked for that. */
const NOT_ISOLATED =
  'berth: NOT isolated: commands on servers run with your rights on your files, since no isolation works here. ' +
  '"berth doctor" says why, and "--isolation none" that you know.\n'

/**
 * Writes the coverage and prints a summary, or why it cannot be written.
 *
 * @returns whether it was written
 */
async function writeCoverage(coverage: Coverage, command: readonly string[]): Promise<boolean> {
  try {
    printLog(`berth: ${await coverage.write(command)}\n`)
    return true
  } catch (error) {
    if (!(error instanceof StartupError)) throw error
    printLog(`berth: ${error.message}\n`)
    return false
  }
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

/** Returns the command's environment: that of this process, and the variables of the instance. */
function commandEnvironment({ info }: Berth, env: ProcessContext['env']): Record<string, string | undefined> {
  const { BERTH_API_KEY, ...variables } = variablesOf(info)
  return { ...env, ...variables, BERTH_API_KEY: BERTH_API_KEY ?? undefined, BERTH_DATA: info.data_dir }
}

/** Returns the message for a failed command whose instance was removed. */
function failureText(name: string, code: number, errors: readonly string[]): string {
  const logged = errors.length === 0 ? '' : `berth: the instance had logged errors:\n${errors.join('')}`
  return `${logged}berth: ${name} ended with ${code}. "berth run --keep" keeps the instance's data and log.\n`
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
