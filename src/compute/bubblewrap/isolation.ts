import { readdirSync, realpathSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { messageOf } from '../../runtime/error-info.ts'
import { once } from '../../runtime/once.ts'
import { ComputeError } from '../driver.ts'
import type { ShownGroup } from '../limits/limiter.ts'
import {
  baseEnvironment,
  type IsolationProbe,
  type Launch,
  type LaunchUser,
  type LocalDriverOptions,
  type LocalIsolation,
  SANDBOXD_ENVIRONMENT,
  type ServerToStart,
} from '../local/isolation.ts'
import { WORKSPACE } from '../local/mount-tables.ts'
import { loadSocketCalls, OWN_IPV4 } from '../local/network/socket-calls.ts'
import { dataMarkerOf, serverMarkerOf } from '../local/server-directories.ts'
import { FILES_FD, REPORT_FD, runOnce, type SpawnPlan } from '../local/spawn.ts'
import {
  hiddenDirectories,
  type SystemPath,
  systemDirectories,
  toolDirectories,
} from '../local/system-files.ts'
import { ToolsDirectory } from '../local/tools-directory.ts'
import { sandboxdArguments } from '../processes.ts'
import { canFilterSystemCalls, NO_FILTER } from '../sandboxd/seccomp-filter.ts'
import { selfFiles } from '../self.ts'
import { EtcDirectory } from './etc.ts'
import { KernelSettings } from './kernel-settings.ts'
import { TerminalLimit } from './pseudo-terminals.ts'
import { explainFailure, MISSING } from './refusal.ts'
import type { ServerUsers } from './server-users.ts'

/**
 * Keeps commands from creating user namespaces. They would have all capabilities in one; if berth is root, that is
 * enough to mount control groups and lift their own limits.
 */
const NO_NESTING = '--disable-userns'

const NESTING_NOTE = `commands can make user namespaces of their own, since this bwrap has no ${NO_NESTING} (0.8 has)`

/** The same in a user namespace that bwrap does not make: none below it. bwrap writes it as `KernelSettings`. */
const NO_NAMESPACES: [path: string, contents: Uint8Array] = [
  '/proc/sys/user/max_user_namespaces',
  new TextEncoder().encode('0'),
]

/** Said once if berth is root and its servers cannot have other users. */
const WITHOUT_USERS =
  "To the kernel, servers' commands are of the user root, and share its limits with each other"

/**
 * Makes sandboxd process 1. The kernel keeps signals of the sandbox's processes from it, so no command can stop it and
 * then exceed its limits, or end it; and it cannot be traced, as bwrap's own process 1 can.
 */
const AS_PROCESS_1 = '--as-pid-1'

/** The user's name inside; its number is 1000, since a root without powers breaks programs such as tar. */
const USER = 'berth'

/**
 * Largest /tmp, bytes. It is in memory, and counts as such: a server with less than four times this gets a quarter of
 * its memory, as it gets for /dev/shm.
 */
const MAX_TMP_BYTES = 2 ** 31

/** Size of /run, bytes. */
const RUN_BYTES = 16 * 2 ** 20

/** Paths inside the sandbox of sandboxd's executable and, when berth runs from source, of its source files. */
const PROGRAM = '/berth'
const SOURCES = '/run/berth/src'

/** Path inside the sandbox of the tools that berth provides. */
const TOOLS = '/opt/berth'

/**
 * Isolates a server by namespaces: its own file tree and processes, no capabilities, and a network of its own if the
 * kernel permits that, else the machine's. See bwrap(1).
 */
export class BubblewrapIsolation implements LocalIsolation {
  readonly name = 'bubblewrap'
  readonly userNamespace = true
  readonly #options: LocalDriverOptions
  #etc: EtcDirectory | null = null
  readonly #tools: ToolsDirectory
  readonly #settings = new KernelSettings()
  readonly #calls = once(loadSocketCalls)
  readonly #terminals: TerminalLimit
  #fixed: FixedArgs | null = null
  #nested: 'refused' | 'possible' = 'refused'
  /** Whose network servers have; null before the kernel was asked. */
  #network: 'own' | 'shared' | null = null
  /** Gives servers users of the kernel's own, if berth is root; null if that cannot be, undefined before the first. */
  #users: ServerUsers | null | undefined
  /** Whether a server has started with a user of its own. */
  #usersWork = false

  constructor(options: LocalDriverOptions) {
    this.#options = options
    this.#terminals = new TerminalLimit(this.#calls, options.path)
    if (!isRoot()) this.#users = null
    this.#tools = new ToolsDirectory(join(options.dataDir, 'sandbox', 'opt'), PROGRAM, TOOLS)
  }

  async probe(): Promise<IsolationProbe> {
    const program = this.#program()
    if (program === null) return { available: false, ...MISSING }
    const { dataDir } = this.#options
    const place = { id: 'probe', workspace: dataDir, tmpBytes: RUN_BYTES, user: null, groups: [] }
    // A start waits for this: it mounts what is there already, and leaves it to the first server to write files.
    const fixed = this.#makeFixedArgs({ etc: '/etc', directories: [], tools: dataDir })
    const marker = serverMarkerOf(dataMarkerOf(realpathSync(dataDir)), place.id)
    const inner = ['/bin/sh', '-c', ':', ...sandboxdArguments(marker)]
    const { code, said } = await runOnce(this.#plan(program, fixed, place, inner))
    if (code === 0)
      return {
        available: true,
        network: this.#chooseNetwork(),
        notes: this.#notes(),
      }
    if (this.#nested === 'refused' && said.includes(NO_NESTING)) {
      this.#nested = 'possible'
      return this.probe()
    }
    if (this.#settings.refuse(said)) return this.probe()
    if (this.#network === 'own') {
      this.#network = 'shared'
      return this.probe()
    }
    return { available: false, ...explainFailure(said) }
  }

  #notes(): string[] {
    return [
      ...(this.#nested === 'refused' ? [] : [NESTING_NOTE]),
      ...(canFilterSystemCalls() ? [] : [NO_FILTER]),
    ]
  }

  async launch(server: ServerToStart): Promise<Launch> {
    const user = await this.#takeUser(server)
    try {
      return await this.#launchAs(user, server)
    } catch (error) {
      user?.release()
      throw error
    }
  }

  async #launchAs(user: OwnUser | null, server: ServerToStart): Promise<Launch> {
    const { id, workspace, marker, limits, groups } = server
    const program = this.#program()
    if (program === null) throw new ComputeError(`${MISSING.reason} ${MISSING.remedy}`)
    const tmpBytes = Math.floor(Math.min(limits.memoryBytes / 4, MAX_TMP_BYTES))
    const main = this.#options.self.compiled ? [] : [`${SOURCES}/main.ts`]
    this.#fixed ??= this.#makeFixedArgs(this.#prepare())
    const place = { id, workspace, tmpBytes, user, groups }
    const plan = this.#plan(program, this.#fixed, place, [PROGRAM, ...main, ...sandboxdArguments(marker)])
    this.#etc?.refresh()
    const path = this.#tools.extend(plan.env.PATH ?? '')
    const commandEnv = baseEnvironment(WORKSPACE, USER, path, '/tmp')
    const descriptors = plan.reports !== undefined ? { descriptors: 'sockets' as const } : {}
    return {
      ...plan,
      ...descriptors,
      workspace: WORKSPACE,
      commandEnv,
      tools: TOOLS,
      limitTerminals: (pid) => this.#terminals.limit(pid),
      confinement: {
        systemCalls: canFilterSystemCalls(),
        procWrites:
          isRoot() && user === null && (await import('../sandboxd/confinement.ts')).canForbidProcWrites(),
      },
      ...(user === null ? {} : { user }),
    }
  }

  /** Returns a user of the kernel's own for a server, if berth is root and the machine permits it. */
  async #takeUser(server: ServerToStart): Promise<OwnUser | null> {
    if (this.#users === null) return null
    const keep = (reason: string): void => {
      if (this.#users !== null) this.#options.logger.warn(`${WITHOUT_USERS}: ${reason}`)
      this.#users = null
    }
    const unshare = Bun.which('unshare', { PATH: this.#options.path })
    try {
      if (unshare === null) throw new Error('unshare (package util-linux) is not installed.')
      const { ServerUsers } = await import('./server-users.ts')
      this.#users ??= new ServerUsers()
      const user = this.#users.take(server.workspace)
      const fallback = this.#usersWork ? null : { launch: () => this.#launchAs(null, server), keep }
      const attachWorkspace = (pid: number): void => {
        user.attachWorkspace(pid)
        this.#usersWork = true
      }
      // The kernel ends process 1 of the sandbox together with bwrap only if both have the same user.
      // Without a namespace to make, unshare only changes the user, in half the time of setpriv, which looks for names.
      const become = [unshare, `--setgid=${user.id}`, `--setuid=${user.id}`]
      return { ...user, attachWorkspace, fallback, become }
    } catch (error) {
      if (this.#usersWork) throw error
      keep(messageOf(error))
      return null
    }
  }

  #plan(program: string, fixed: FixedArgs, place: SandboxMounts, inner: string[]): SpawnPlan {
    const { system, masks, devices, own, path } = fixed
    const { user } = place
    const ownNetwork = this.#chooseNetwork() === 'own'
    const network = ownNetwork ? ['--unshare-net', '--info-fd', String(REPORT_FD)] : []
    const settings = [...(ownNetwork ? this.#settings.files : []), ...(user === null ? [] : [NO_NAMESPACES])]
    const written = settings.flatMap(([path], index) => ['--file', String(FILES_FD + index), path])
    const namespace = user === null ? this.#newUser() : ['--userns', String(FILES_FD + settings.length)]
    const all = [
      ...[AS_PROCESS_1, ...namespace, ...network, ...system, ...written, ...devices],
      ...[...(user === null ? masks : []), ...memoryArgs(place), ...own, ...serverArgs(place)],
    ]
    return {
      argv: [...(user?.become ?? []), program, '--args', '4', '--', ...inner],
      // bwrap stays as process 1, whose environment every command can read.
      env: { PATH: path },
      // Passed through a descriptor, because every process of the sandbox can read the command line.
      input: new TextEncoder().encode(all.map((argument) => `${argument}\0`).join('')),
      ...(ownNetwork ? { reports: () => this.#calls().pair() } : {}),
      files: settings.map(([, contents]) => contents),
      ...(user === null ? {} : { userNamespace: user.namespace }),
    }
  }

  /** Servers have their own network if the kernel tells the networks of sockets apart (SO_NETNS_COOKIE, Linux 5.14). */
  #chooseNetwork(): 'own' | 'shared' {
    this.#network ??= this.#calls().network() === 0n ? 'shared' : 'own'
    return this.#network
  }

  /** Returns the arguments for a user namespace that bwrap makes, with berth's user in it. */
  #newUser(): string[] {
    return ['--unshare-user', ...(this.#nested === 'refused' ? [NO_NESTING] : [])]
  }

  #program(): string | null {
    return Bun.which('bwrap', { PATH: this.#options.path })
  }

  /** Writes the files that every sandbox sees. */
  #prepare(): SharedMounts {
    const nameServer = this.#chooseNetwork() === 'own' ? OWN_IPV4 : null
    this.#etc = new EtcDirectory(join(this.#options.dataDir, 'sandbox', 'etc'), nameServer)
    const directories = this.#etc.prepare({
      passwd: `${USER}:x:1000:1000:${USER}:/workspace:/bin/sh\n`,
      group: `${USER}:x:1000:\n`,
    })
    this.#tools.prepare()
    return { etc: this.#etc.path, directories, tools: this.#tools.path }
  }

  /** Returns the arguments that are the same for every server, and the PATH inside. */
  #makeFixedArgs({ etc, directories, tools: toolsDirectory }: SharedMounts): FixedArgs {
    const { dataDir, self, path } = this.#options
    const tools = toolDirectories(path, hiddenDirectories(dataDir))
    const { program, sources } = selfFiles(self)
    const system = [
      ...['--unshare-pid', '--unshare-ipc', '--unshare-uts', '--unshare-cgroup-try'],
      ...['--uid', '1000', '--gid', '1000', '--cap-drop', 'ALL', '--new-session', '--die-with-parent'],
      ...['--ro-bind', '/usr', '/usr'],
      ...systemDirectories().flatMap(linkOrBind),
      ...['--ro-bind', etc, '/etc'],
      ...directories.flatMap(bind),
      ...['--proc', '/proc'],
    ]
    const devices = [
      // The kernel takes root in a sandbox that root started for root: it may change kernel settings without a
      // capability.
      ...['--ro-bind', '/proc/sys', '/proc/sys'],
      ...['--dev', '/dev', '--size', String(RUN_BYTES), '--tmpfs', '/run'],
    ]
    const masks = isRoot() ? ownersFiles().flatMap((path) => ['--ro-bind', '/dev/null', path]) : []
    // After /tmp and /run, because some of these paths may be below them.
    const own = [
      ...tools.directories.flatMap(bind),
      ...['--ro-bind', program, PROGRAM, '--ro-bind', toolsDirectory, TOOLS],
      // Set for sandboxd only: process 1 keeps bwrap's own environment.
      ...Object.entries(SANDBOXD_ENVIRONMENT).flatMap(([name, value]) => ['--setenv', name, value]),
      ...(sources === null ? [] : ['--ro-bind', sources, SOURCES]),
    ]
    return { system, masks, devices, own, path: tools.path }
  }
}

/** A user of the kernel's that a sandbox has for itself. */
interface OwnUser extends LaunchUser {
  /** Descriptor of the sandbox's user namespace. */
  readonly namespace: number
  /** Command prefix by which a process of root becomes the user. */
  readonly become: readonly string[]
}

/** Absolute paths that every sandbox has mounted. */
interface SharedMounts {
  /** Becomes /etc. */
  etc: string
  /** Directories of the system to mount inside /etc. */
  directories: SystemPath[]
  /** The directory with the tools that berth provides. */
  tools: string
}

/** Arguments that are the same for every server. */
interface FixedArgs {
  /** Namespaces, the system's files and /proc, whose settings can be written. */
  system: string[]
  /** What takes the settings from programs, and devices. */
  devices: string[]
  /** Files of /proc that a sandbox whose user is root to the kernel may not see. */
  masks: string[]
  /** Tools of PATH and sandboxd's executable. */
  own: string[]
  /** The PATH inside. */
  path: string
}

/** The paths and sizes that differ between servers. */
interface SandboxMounts {
  id: string
  workspace: string
  tmpBytes: number
  /** The user of the sandbox, as whom its workspace comes later; null if it is berth's. */
  user: OwnUser | null
  /** Its control groups, which are shown read-only. */
  groups: readonly ShownGroup[]
}

function memoryArgs({ tmpBytes }: SandboxMounts): string[] {
  const size = String(tmpBytes)
  return ['--size', size, '--tmpfs', '/tmp', '--size', size, '--tmpfs', '/dev/shm']
}

function serverArgs({ id, workspace, user, groups }: SandboxMounts): string[] {
  return [
    ...groups.flatMap(({ dir, path }) => ['--ro-bind-try', dir, path]),
    // The rest of bwrap's own file system is in memory without a limit, so nothing may be written there.
    ...(user === null ? ['--bind', workspace, WORKSPACE] : ['--dir', WORKSPACE]),
    ...['--remount-ro', '/dev', '--remount-ro', '/'],
    ...['--hostname', id, '--chdir', '/'],
  ]
}

function bind({ path, real }: SystemPath): string[] {
  return ['--ro-bind', real, path]
}

/** Keeps a link into /usr a link, so a path means the same inside and outside. */
function linkOrBind(dir: SystemPath): string[] {
  return dir.real === dir.path ? bind(dir) : ['--symlink', dir.real.slice(1), dir.path]
}

const isRoot = (): boolean => process.getuid?.() === 0

/**
 * Returns the files right below /proc that only root may read, such as the kernel's addresses in vmallocinfo. A
 * sandbox that root started could read them without any capability.
 */
function ownersFiles(): string[] {
  return readdirSync('/proc', { withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ name }) => `/proc/${name}`)
    .filter((path) => {
      const mode = statSync(path, { throwIfNoEntry: false })?.mode ?? 0o077
      return (mode & 0o077) === 0
    })
}
