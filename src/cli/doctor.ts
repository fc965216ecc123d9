import { existsSync, mkdtempSync, rmSync, statfsSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import {
  type ComputeDriver,
  type DriverName,
  type Enforced,
  type EngineFinding,
  type IsolationName,
  kindOf,
  type Limits,
  loadDrivers,
  ownImage,
  type Probe,
  type SelectedDriver,
  TOOLS_PATH,
} from '../compute/compute.ts'
import { listProcesses, readName } from '../compute/processes.ts'
import { portsOf } from '../compute/remains.ts'
import {
  commandOf,
  type ShownTools,
  selectMachineTools,
  type Toolchain,
  type ToolPlaces,
} from '../compute/tools.ts'
import type { Config } from '../config/config.ts'
import { loadConfig } from '../config/load.ts'
import { explanationOf } from '../errors.ts'
import type { Machine } from '../hosting/detection/detect.ts'
import { SandboxMachine, titleOf } from '../hosting/detection/detect.ts'
import { codeOf, messageOf } from '../runtime/error-info.ts'
import { realPathOrNull } from '../runtime/if-present.ts'
import { fieldsOf } from '../runtime/is-object.ts'
import { createLogger } from '../runtime/logger.ts'
import { reachLoopbackDirectly } from '../runtime/process-environment.ts'
import { runHelper } from '../runtime/run-helper.ts'
import { selfCommand } from '../runtime/self.ts'
import { makeTemporary, readInstance } from '../storage/data-directory.ts'
import { findDataDirectory } from './find-instance.ts'
import type { ProcessContext } from './process-context.ts'
import { type VersionInfo, versionInfo } from './version.ts'

/** The result of one examination. */
export interface Finding {
  /** The examined thing, in a word or two. */
  name: string
  /**
   * `ok`: present; `absent`: missing, and berth works without it; `failed`: berth cannot run, or not as configured.
   */
  status: 'ok' | 'absent' | 'failed'
  /** The result, in words. */
  detail: string
  /** The remedy for a person. */
  remedy?: string
}

/** The result of `berth doctor`. */
export interface Report extends VersionInfo {
  /** Whether berth can run as configured. */
  ok: boolean
  /** The isolation that servers would have; null if none is available. */
  isolation: IsolationName | null
  /** The limits that this isolation enforces. */
  enforced: Enforced | null
  findings: Finding[]
}

/** A driver, and what came of trying it. */
interface ProbedDriver {
  readonly name: DriverName
  readonly probe: Probe
}

/** The isolation that this machine offers. */
interface IsolationReport {
  /** The driver that servers would have; null if none is available. */
  used: DriverName | null
  /** The limits that this isolation enforces. */
  enforced: Enforced | null
  findings: Finding[]
}

/** What to examine. */
interface Examination {
  /** The command that is to run: `run` uses free ports and a temporary directory. */
  readonly purpose: 'serve' | 'run'
  /**
   * What an instance of this process runs servers with: it is not tried again, and no server is started to examine terminals
   * and tools.
   */
  readonly selected?: SelectedDriver | null
  /** Called before each step that may take long, with what is done, for a person. */
  readonly onStep?: (step: string) => void
}

/**
 * Examines this machine with the configuration of this directory and environment.
 *
 * @param flags options in place of the configured ones: the data directory, and what servers run on
 * @throws StartupError for an invalid configuration
 */
export async function examine(
  flags: { data?: string | undefined; compute?: string | undefined; engine?: string | undefined },
  { env, cwd }: ProcessContext,
  { purpose, selected = null, onStep = () => {} }: Examination,
): Promise<Report> {
  const given = Object.fromEntries(Object.entries(flags).filter(([, value]) => value !== undefined))
  const config = loadConfig({ flags: given, env, cwd })
  const running = readInstance(findDataDirectory(flags.data, env, cwd))?.base_url ?? null
  reachLoopbackDirectly()
  // Isolation is tried in a temporary directory: an examination must not create a data directory.
  const trial = makeTemporary(tmpdir(), 'berth-doctor-')
  try {
    const path = env.PATH ?? ''
    const wanted = wantedDriver(config)
    const { drivers, examineEngine } =
      selected === null ? await driversFor(config, { env, trial }) : { drivers: [] }
    onStep(`try ${drivers.map(({ name }) => name).join(', ')}`)
    const [isolation, git, instance] = await Promise.all([
      selected === null ? examineIsolation(drivers, wanted) : isolationOf(selected, wanted),
      examineGit(path),
      examineInstance(running, wanted),
    ])
    const used = drivers.find(({ name }) => name === isolation.used) ?? null
    const hasImage = used !== null && kindOf(used.name).compute !== 'local'
    onStep('try a terminal on a server')
    const terminal = selected === null ? await examineTerminal(used) : null
    const startsNone = terminal?.status === 'failed'
    onStep('look at the tools of a server')
    const findings = [
      ...isolation.findings,
      ...(hasImage && !startsNone
        ? [ok('image', config.serverImage ?? ownImage(versionInfo().version))]
        : []),
      ...(terminal === null ? [] : [terminal]),
      ...(terminal === null || startsNone
        ? []
        : [
            ...(await examineTools(used, { path, variables: env, dataDir: trial })),
            ...(used === null || examineEngine === undefined
              ? []
              : await examined(() => examineEngine(onStep))),
          ]),
      git,
      ...(purpose === 'run'
        ? [examineDirectory(tmpdir(), 'temporary directory')]
        : [examinePort(config.host, config.port, running), examineDirectory(config.dataDir), instance]),
    ]
    return {
      ok: findings.every(({ status }) => status !== 'failed'),
      ...versionInfo(),
      isolation: isolation.used === null ? null : kindOf(isolation.used).isolation,
      enforced: isolation.enforced,
      findings,
    }
  } finally {
    rmSync(trial, { recursive: true, force: true })
  }
}

/** Returns the driver that is configured; `auto` for the best one. */
const wantedDriver = ({ compute, isolation }: Config): 'auto' | DriverName =>
  compute === 'auto' || compute === 'local' ? isolation : compute

/** The drivers to try, the best first. */
interface TriedDrivers {
  readonly drivers: readonly ComputeDriver[]
  /** Tries what only servers show of an engine that was asked for; missing where nothing does. */
  readonly examineEngine?: (onStep: (step: string) => void) => Promise<readonly EngineFinding[]>
}

/** Makes the drivers to try on a directory that is removed afterwards. */
async function driversFor(
  config: Config,
  { env, trial }: { env: ProcessContext['env']; trial: string },
): Promise<TriedDrivers> {
  const { localDrivers, NO_PROVISIONS, openEngine } = await loadDrivers()
  const { compute, isolation } = config
  const logger = createLogger('silent', () => {}, Date.now)
  const local = localDrivers({
    self: selfCommand(),
    path: env.PATH ?? '',
    variables: env,
    dataDir: trial,
    allowUnixSockets: config.allowUnixSockets,
    logger,
  })
  if (compute === 'local' || isolation !== 'auto') return { drivers: local }
  const name = compute === 'auto' ? 'docker' : compute
  const opening = openEngine(name, {
    ...{ config, logger, variables: env, version: versionInfo().version },
    dataDir: trial,
    ephemeral: true,
    ...NO_PROVISIONS,
  })
  if (compute !== 'auto') {
    const { driver, examine } = await opening
    const examineEngine = examine && ((onStep: (step: string) => void) => examine(driver, onStep))
    return { drivers: [driver], ...(examineEngine && { examineEngine }) }
  }
  const engine = await opening.catch(() => null)
  const isNone = ({ name }: ComputeDriver): boolean => name === 'none'
  return {
    drivers: [
      ...local.filter((driver) => !isNone(driver)),
      ...(engine?.isLocal ? [engine.driver] : []),
      ...local.filter(isNone),
    ],
  }
}

/** Returns what came of trying an engine, or that it could not be tried. */
async function examined(examine: () => Promise<readonly EngineFinding[]>): Promise<Finding[]> {
  try {
    return (await examine()).map(({ name, detail, remedy }) =>
      remedy === null ? ok(name, detail) : absent(name, detail, remedy),
    )
  } catch (error) {
    const reason = explanationOf(error)
    if (reason === null) throw error
    return [absent('servers', `two beside each other could not be tried: ${reason}`, 'Follow what it says.')]
  }
}

const LIMIT_NAMES: [keyof Enforced, string][] = [
  ['cpu', 'CPU limit'],
  ['memory', 'memory limit'],
  ['processes', 'process limit'],
  ['disk', 'disk limit'],
  ['network', 'network'],
  ['user', 'user of servers'],
]

/**
 * Tries every isolation. Reports the one that servers would have and the limits that it enforces.
 *
 * @param drivers the best first
 * @param wanted the configured one; `auto` chooses none only if it is asked for by name
 */
export async function examineIsolation(
  drivers: readonly ComputeDriver[],
  wanted: 'auto' | DriverName,
): Promise<IsolationReport> {
  const { probeDrivers } = await loadDrivers()
  return describeIsolation(await probeDrivers(drivers), wanted)
}

/** Reports the isolation that an instance uses, and the stronger ones that it could not use. */
const isolationOf = (
  { driver, rejected, ...selected }: SelectedDriver,
  wanted: 'auto' | DriverName,
): Promise<IsolationReport> =>
  describeIsolation(
    [
      ...rejected.map(({ name, ...why }) => ({ name, probe: { available: false as const, ...why } })),
      { name: driver.name, probe: { available: true, ...selected } },
    ],
    wanted,
  )

async function describeIsolation(
  probed: readonly ProbedDriver[],
  wanted: 'auto' | DriverName,
): Promise<IsolationReport> {
  const used = probed.find(
    ({ name, probe }) => probe.available && (wanted === 'auto' ? name !== 'none' : wanted === name),
  )
  const findings = probed.map(({ name, probe }): Finding => {
    if (!probe.available) {
      const state = name === wanted ? failed : absent
      return state(name, `not available: ${probe.reason}`, probe.remedy)
    }
    const about = kindOf(name).compute === 'local' ? '; weaker here: ' : '. '
    const notes = (probe.notes ?? []).map((note) => `${about}${note.replace(/\.$/, '')}`).join('')
    return ok(name, `${name === used?.name ? 'works, and is used' : 'works'}${notes}`)
  })
  const enforced = used?.probe.available ? await used.probe.enforced() : null
  const isHere = used !== undefined && kindOf(used.name).compute === 'local'
  for (const [key, label] of enforced ? LIMIT_NAMES : [])
    findings.push(limit(label, enforced?.[key] ?? 'none', isHere ? REMEDIES : {}))
  if (!used && wanted === 'auto') {
    findings.push(
      failed(
        'isolation',
        'no isolation can be used',
        'Follow one of the remedies above, or let commands do what you may, on your files: --compute local --isolation none.',
      ),
    )
  }
  return { used: used?.name ?? null, enforced, findings }
}

function limit(label: string, mechanism: string, remedies: Readonly<Record<string, string>>): Finding {
  if (mechanism === 'none') return { name: label, status: 'absent', detail: 'not enforced on this machine' }
  const remedy = remedies[mechanism]
  return remedy === undefined ? ok(label, mechanism) : absent(label, mechanism, remedy)
}

/** What a person can do on this machine for more, by `Enforced.network` and `Enforced.user`. */
const REMEDIES: Readonly<Record<string, string>> = {
  'own, outbound by proxy':
    'Some programs use no proxy. Install nftables (nft) and util-linux (nsenter); the kernel needs nft_redir.',
  'shared with this machine':
    'Servers reach all that this machine reaches. A network of their own takes bubblewrap, Linux 5.14 and a system that permits network namespaces.',
  'shared with root':
    'To the kernel, commands are root without capabilities. A user for each server takes bubblewrap, unshare (util-linux), Linux 5.12, and a file system that maps owners (not overlayfs). Or run berth as an ordinary user.',
}

/** Limits for the one command. */
const PROBE_LIMITS: Limits = { cpus: 1, memoryBytes: 2 ** 28, processes: 100, storageBytes: 2 ** 24 }

/** Time limit of the command, in milliseconds. */
const PATIENCE_MS = 10_000

/** Exit codes of the command: a stream is not a terminal, or the terminal is not the controlling one. */
const NO_TERMINAL = 3
const NOT_CONTROLLING = 4

const COMMAND = `test -t 0 && test -t 1 && test -t 2 || exit ${NO_TERMINAL}; (: </dev/tty) 2>/dev/null || exit ${NOT_CONTROLLING}`

const MOUNT = 'Mount devpts on /dev/pts, with ptmxmode=666.'

/**
 * Examines terminals on servers by opening one. Of an engine, the finding that none can be started takes its place.
 *
 * @param driver of the isolation that servers would have, on a writable directory; null if none is available
 */
async function examineTerminal(driver: ComputeDriver | null): Promise<Finding> {
  const name = 'terminal'
  if (driver === null) return { name, status: 'absent', detail: 'not tried: nothing can run servers' }
  try {
    const exitCode = await tryTerminal(driver)
    if (exitCode === 0) return ok(name, 'servers have pseudo-terminals')
    if (exitCode === NOT_CONTROLLING) {
      const detail =
        'servers have pseudo-terminals, but Ctrl-C and job control do not work: setsid is missing'
      return absent(name, detail, 'Install util-linux.')
    }
    return absent(name, `programs do not see a pseudo-terminal as a terminal (exit code ${exitCode})`, MOUNT)
  } catch (error) {
    if (kindOf(driver.name).compute !== 'local')
      return failed('servers', `none can be started: ${messageOf(error)}`, 'Follow what it says.')
    return absent(name, `no pseudo-terminal: ${error instanceof Error ? error.message : error}`, MOUNT)
  }
}

async function tryTerminal(driver: ComputeDriver): Promise<number> {
  const handle = await driver.create('srv_doctor')
  try {
    const sandbox = await driver.start('srv_doctor', handle, PROBE_LIMITS)
    try {
      const terminal = sandbox.terminal({
        command: COMMAND,
        size: { columns: 80, rows: 24 },
        timeoutMs: PATIENCE_MS,
        onOutput() {},
      })
      return (await terminal.exit).exitCode
    } finally {
      await sandbox.stop()
    }
  } finally {
    await driver.destroy(handle)
  }
}

/** Time limit of `git --version`, in milliseconds. */
const GIT_MS = 5_000

/** The result of a program that cannot be run. */
const BROKEN = { exitCode: null, stdout: '' }

/** Examines git, which projects from a repository need. */
export async function examineGit(path: string): Promise<Finding> {
  const program = Bun.which('git', { PATH: path })
  if (!program)
    return absent(
      'git',
      'not found',
      'Install git: berth fetches repositories with it, and servers of this machine share it.',
    )
  const { exitCode, stdout } = await runHelper([program, '--version'], { timeoutMs: GIT_MS }).catch(
    () => BROKEN,
  )
  if (exitCode !== 0) return absent('git', `${program} does not run`, 'Install git anew.')
  return ok('git', `${stdout.trim().replace(/^git version /, '')} (${program})`)
}

/**
 * Examines whether the port is free, by listening on it.
 *
 * @param runningUrl address of the instance that runs on the data directory and may have the port
 */
export function examinePort(host: string, port: number, runningUrl: string | null): Finding {
  const name = `port ${port}`
  if (port === 0) return ok('port', 'any free one')
  try {
    Bun.listen({ hostname: host, port, socket: { data() {} } }).stop(true)
    return ok(name, 'free')
  } catch (error) {
    if (runningUrl && new URL(runningUrl).port === String(port)) return ok(name, 'taken by the running berth')
    const remedy = 'Stop what listens there, or choose another with --port (0 for any free one).'
    if (codeOf(error) !== 'EADDRINUSE')
      return absent(name, `cannot be listened on: ${messageOf(error)}`, remedy)
    const owner = listProcesses().find(({ pid }) => portsOf(pid).includes(port))
    const by = owner === undefined ? 'another program' : `pid ${owner.pid} (${programOf(owner.pid)})`
    return absent(name, `in use by ${by}`, remedy)
  }
}

const programOf = (pid: number): string => readName(pid)?.trim() || 'a program'

/** Examines whether the data directory, or the directory to create it in, is writable, by writing there. */
export function examineDirectory(directory: string, name = 'data directory'): Finding {
  let existing = directory
  while (!existsSync(existing)) existing = dirname(existing)
  try {
    rmSync(mkdtempSync(join(existing, '.berth-doctor-')), { recursive: true })
    const { bavail, bsize } = statfsSync(existing)
    return ok(name, `${directory}, ${((bavail * bsize) / 1e9).toFixed(1)} GB free`)
  } catch (error) {
    const other = name === 'data directory' ? '--data' : 'TMPDIR'
    return failed(
      name,
      `${directory} cannot be written: ${messageOf(error)}`,
      `Fix its permissions or free its disk, or choose another with ${other}.`,
    )
  }
}

/**
 * Milliseconds after which an instance without a response counts as hanging. A refused connection fails at once, but
 * on a busy machine a response may take seconds.
 */
const HANG_MS = 10_000

/**
 * Asks the instance that runs on the data directory for its version.
 *
 * @param wanted what is examined here, which the instance may have been started without
 */
export async function examineInstance(url: string | null, wanted: 'auto' | DriverName): Promise<Finding> {
  const name = 'instance'
  if (url === null) return { name, status: 'absent', detail: 'none runs on the data directory' }
  try {
    const response = await fetch(`${url}/_berth/health`, { signal: AbortSignal.timeout(HANG_MS) })
    const { version, compute } = fieldsOf(await response.json())
    const isElsewhere = (compute === 'docker' || compute === 'kubernetes') && compute !== wanted
    const servers = isElsewhere
      ? `, and its servers on ${compute}: "berth doctor --compute ${compute}" examines these`
      : ''
    if (typeof version === 'string') return ok(name, `berth ${version} runs at ${url}${servers}`)
  } catch {
    // Reported below.
  }
  return absent(
    name,
    `the one named in the directory does not answer at ${url}`,
    'Start it anew with "berth serve".',
  )
}

/** Returns the finding that something is present. */
const ok = (name: string, detail: string): Finding => ({ name, status: 'ok', detail })

/** Returns the finding that something is missing and berth works without it. */
const absent = (name: string, detail: string, remedy: string): Finding => ({
  name,
  status: 'absent',
  detail,
  remedy,
})

/** Returns the finding that something is missing and berth cannot run as configured. */
const failed = (name: string, detail: string, remedy: string): Finding => ({
  name,
  status: 'failed',
  detail,
  remedy,
})

/** The tools that are examined, a line each. */
const EXAMINED = ['python', 'node', 'go', 'java', 'mvn', 'gradle', 'cargo', 'ruby', 'php', 'deno']

/** Limits of the server that runs each tool once. */
const TRIAL_LIMITS: Limits = { cpus: 2, memoryBytes: 2 ** 29, processes: 200, storageBytes: 2 ** 26 }

/**
 * Examines which languages' tools servers see, by running each on a server.
 *
 * @param driver of the isolation that servers would have, on a writable directory; null if none is available
 */
async function examineTools(driver: ComputeDriver | null, places: ToolPlaces): Promise<Finding[]> {
  if (driver === null) return []
  // Servers on an engine see the tools of their image.
  const tools =
    kindOf(driver.name).compute === 'local'
      ? selectMachineTools(places, driver.name === 'none' ? 'all' : 'selected')
      : NO_TOOLS
  try {
    return await onTrialServer(driver, async (machine) => [
      ...(await Promise.all(EXAMINED.map((tool) => examineTool(tool, machine, places, tools)))),
      ...examinePath(tools),
    ])
  } catch (error) {
    return [{ name: 'tools', status: 'absent', detail: `not tried: ${messageOf(error)}` }]
  }
}

/** What servers see of the tools of this machine where they see none. */
const NO_TOOLS: ShownTools = { path: [], shown: [], toolchains: [], leftOut: [] }

/** Runs an examination on a server that is gone afterwards. */
async function onTrialServer<T>(
  driver: ComputeDriver,
  examine: (machine: Machine) => Promise<T>,
): Promise<T> {
  const handle = await driver.create('srv_doctor_tools')
  try {
    const sandbox = await driver.start('srv_doctor_tools', handle, TRIAL_LIMITS)
    try {
      return await examine(new SandboxMachine(sandbox))
    } finally {
      await sandbox.stop()
    }
  } finally {
    await driver.destroy(handle)
  }
}

/** Examines one tool: the version that servers see, the further ones, and what of PATH they do not see. */
async function examineTool(
  tool: string,
  machine: Machine,
  { path }: ToolPlaces,
  { leftOut }: ShownTools,
): Promise<Finding> {
  const name = titleOf(tool)
  const command = commandOf(tool)
  const [found, isThere] = await Promise.all([machine.toolchains(tool), machine.has(command)])
  const own = Bun.which(command, { PATH: path })
  const unseen = leftOut.find(({ path: left }) => own === left || (own !== null && dirname(own) === left))
  const loss =
    unseen === undefined || found.some(({ path: seen }) => isSame(seen, own))
      ? ''
      : `; not ${own}: ${unseen.why}`
  if (!isThere && machine.hasImage) return { name, status: 'absent', detail: 'the image has none' }
  if (!isThere) {
    const others = found.length === 0 ? '' : `; not on PATH: ${versionsOf(found)}`
    return { name, status: 'absent', detail: `servers see none${loss}${others}` }
  }
  const check = await machine.check(command)
  const [first, ...others] = found
  if (!check.works) {
    const detail = `${first?.path ?? command} does not run on servers: ${check.error}${loss}`
    return { name, status: 'absent', detail }
  }
  const place = first?.isDefault ? placeOf(first, machine) : "berth's own"
  const further = first?.isDefault ? others : found
  const also = further.length === 0 ? '' : `; also ${versionsOf(further)}`
  return {
    name,
    status: 'ok',
    detail: `${first?.isDefault ? first.version : check.version} (${place})${also}${loss}`,
  }
}

/** Returns where a tool is that PATH leads to, for a person. */
function placeOf({ path, source }: Toolchain, { hasImage }: Machine): string {
  if (hasImage) return path.startsWith(`${TOOLS_PATH}/bin/`) ? "berth's own" : 'of the image'
  return `${path}${source === 'system' ? '' : `, by ${source}`}`
}

const versionsOf = (found: readonly { version: string }[]): string =>
  [...new Set(found.map(({ version }) => version))].join(', ')

const isSame = (seen: string, own: string | null): boolean =>
  own !== null && realPathOrNull(seen) === realPathOrNull(own)

/** Lists the directories of PATH that servers do not see. */
function examinePath({ leftOut }: ShownTools): Finding[] {
  if (leftOut.length === 0) return []
  const detail = leftOut.map(({ path, why }) => `${path}: ${why}`).join('; ')
  return [{ name: 'PATH', status: 'ok', detail: `servers do not see ${detail}` }]
}
