import { dirname } from 'node:path'
import { type SelfCommand, selfFiles, versionFileOf } from '../../runtime/self.ts'
import { canFilterSystemCalls, NO_FILTER } from '../../system/linux/seccomp-filter.ts'
import { selectEtc } from '../local/etc-files.ts'
import { emptyDirectory, hostLaunch, hostTools } from '../local/host-launch.ts'
import type {
  IsolationProbe,
  Launch,
  LocalDriverOptions,
  LocalIsolation,
  ServerToStart,
} from '../local/isolation.ts'
import { selectMachineTools } from '../local/machine-tools.ts'
import { runOnce, type SpawnPlan } from '../local/spawn.ts'
import { systemDirectories } from '../local/system-files.ts'
import { isOn, type ToolsDirectory } from '../local/tools-directory.ts'
import { DESCRIPTORS_FD } from '../sandboxd/protocol.ts'
import type { LandlockPlan } from './plan.ts'
import { canScopeUnixSockets, gapsOf } from './ruleset.ts'

/** Devices that programs count on; not those behind which other users' terminals and memory lie. */
const DEVICES = ['null', 'zero', 'full', 'random', 'urandom', 'tty'].map((name) => `/dev/${name}`)

/**
 * Files that language runtimes read about the machine. They show nothing of other processes, because Landlock denies
 * tracing them.
 */
const MACHINE = ['/proc', '/sys/devices/system', '/sys/fs/cgroup']

/** The names of users and groups. */
const ACCOUNTS = ['/etc/passwd', '/etc/group']

/** What a person reads about Unix sockets before Linux 7.1. */
const NO_UNIX_SOCKETS =
  'commands cannot create Unix sockets, which tsx, PostgreSQL and others need; --allow-unix-sockets lets them, and then they reach those of your programs, too'
const REACHABLE_UNIX_SOCKETS =
  "commands can use the Unix sockets of the user's programs, such as an SSH agent, the session bus or Docker"

const REMEDY =
  'Use Linux 5.13 or newer with Landlock switched on (landlock in /sys/kernel/security/lsm), and a container runtime whose seccomp profile knows its system calls.'

/**
 * Isolation by Landlock: the user's own rights, less all files but the system's and the server's own.
 * Works without any privilege, in containers too.
 */
export class LandlockIsolation implements LocalIsolation {
  readonly name = 'landlock'
  readonly namespaces = false
  readonly keepsGroups = true
  readonly #options: LocalDriverOptions
  readonly #tools: ToolsDirectory

  constructor(options: LocalDriverOptions) {
    this.#options = options
    this.#tools = hostTools(options)
  }

  async probe(): Promise<IsolationProbe> {
    const { self, dataDir, path } = this.#options
    // Tries, under the real rules, an access that must fail: listing the data directory.
    const script = 'ls "$0" >/dev/null 2>&1 && exit 3; exit 0'
    const { read, list } = this.#readable()
    const plan: LandlockPlan = {
      argv: ['/bin/sh', '-c', script, dataDir],
      env: { PATH: path },
      read,
      list,
      write: DEVICES,
      keep: [],
      announce: true,
    }
    const { code, said } = await runOnce(launcher(self, plan))
    if (code === 0) return { available: true, network: 'shared', notes: this.#notesOn(Number(said)) }
    const reason = code === 3 ? 'Landlock is there but hides nothing.' : `Landlock failed: ${said}`
    return { available: false, reason, remedy: REMEDY }
  }

  async launch(server: ServerToStart): Promise<Launch> {
    const tmp = await emptyDirectory(server.dir, 'tmp')
    const { read, list, path } = this.#readable()
    const launch = hostLaunch(this.#options, this.#tools, server, { path, tmp, sees: 'selected' })
    const { argv, env, commandEnv } = launch
    const plan: LandlockPlan = {
      argv,
      env,
      read,
      list,
      write: [...DEVICES, server.workspace, server.caches, tmp],
      keep: [DESCRIPTORS_FD],
      announce: false,
    }
    return {
      ...launch,
      ...launcher(this.#options.self, plan),
      // A rule that let commands open terminals would let them open others', berth's too.
      descriptors: 'terminals',
      confinement: {
        systemCalls: canFilterSystemCalls(),
        unixSockets: this.#refusesUnixSockets(
          (await import('../../system/linux/confinement.ts')).landlockVersion(),
        ),
        setIdBits: canFilterSystemCalls(),
        procWrites: false,
        // Its own domain does that.
        abstractSockets: false,
      },
      // Without its powers root cannot give files away, which GNU tar attempts as root.
      commandEnv: process.getuid?.() === 0 ? { ...commandEnv, TAR_OPTIONS: '--no-same-owner' } : commandEnv,
    }
  }

  /** Reports whether commands get no Unix sockets, for lack of a way to keep them from those of the user's programs. */
  #refusesUnixSockets(version: number): boolean {
    return canFilterSystemCalls() && !canScopeUnixSockets(version) && !this.#options.allowUnixSockets
  }

  #notesOn(version: number): string[] {
    const notes = gapsOf(version)
    if (!canFilterSystemCalls()) notes.push(NO_FILTER)
    if (this.#refusesUnixSockets(version)) notes.push(NO_UNIX_SOCKETS)
    else if (!canScopeUnixSockets(version)) notes.push(REACHABLE_UNIX_SOCKETS)
    return notes
  }

  /** Returns what commands may read, and the part of PATH that is in it. */
  #readable(): { read: string[]; list: string[]; path: string } {
    const { program, sources } = selfFiles(this.#options.self)
    const etc = selectEtc()
    const tools = selectMachineTools(this.#options)
    const path = tools.path.join(':')
    this.#tools.prepare(isOn(path))
    const system = [...systemDirectories(), ...etc.directories, ...etc.files, ...tools.shown].map(
      ({ real }) => real,
    )
    const own = [program, this.#tools.path, ...(sources === null ? [] : [sources, versionFileOf(sources)])]
    return {
      read: ['/usr', ...ACCOUNTS, ...MACHINE, ...system, ...own],
      // Bun lists the directory of a file that it imports.
      list: [...etc.partial, ...(sources === null ? [] : [dirname(sources)])],
      path,
    }
  }
}

function launcher(self: SelfCommand, plan: LandlockPlan): SpawnPlan {
  const input = new TextEncoder().encode(JSON.stringify(plan))
  const { PATH = '', ...rest } = plan.env
  return { argv: [...self.argv, '__landlock'], env: { PATH, ...rest }, input }
}
