import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { ComputeError } from '../driver.ts'
import {
  baseEnvironment,
  type IsolationProbe,
  type Launch,
  type LocalDriverOptions,
  type LocalIsolation,
  SANDBOXD_ENVIRONMENT,
  type ServerToStart,
} from '../local/isolation.ts'
import { WORKSPACE } from '../local/mount-tables.ts'
import { loadSocketCalls, OWN_IPV4 } from '../local/network/socket-calls.ts'
import { FILES_FD, REPORT_FD, runOnce, type SpawnPlan } from '../local/spawn.ts'
import {
  hiddenDirectories,
  type SystemPath,
  systemDirectories,
  toolDirectories,
} from '../local/system-files.ts'
import { ToolsDirectory } from '../local/tools-directory.ts'
import { canFilterSystemCalls, NO_FILTER } from '../sandboxd/system-calls.ts'
import { selfFiles } from '../self.ts'
import { EtcDirectory } from './etc.ts'
import { KernelSettings } from './kernel-settings.ts'

/**
 * Keeps commands from creating user namespaces. They would have all capabilities in one; if berth is root, that is
 * enough to mount control groups and lift their own limits.
 */
const NO_NESTING = '--disable-userns'

const NESTING_NOTE = `commands can make user namespaces of their own, since this bwrap has no ${NO_NESTING} (0.8 has)`

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
 * Isolates a server by namespaces: its own file tree and processes, no capabilities, the host's network. See
 * bwrap(1).
 */
export class BubblewrapIsolation implements LocalIsolation {
  readonly name = 'bubblewrap'
  readonly userNamespace = true
  readonly #options: LocalDriverOptions
  #etc: EtcDirectory | null = null
  readonly #tools: ToolsDirectory
  readonly #settings = new KernelSettings()
  #fixed: FixedArgs | null = null
  #nested: 'refused' | 'possible' = 'refused'
  /** Whose network servers have; null before the kernel was asked. */
  #network: 'own' | 'shared' | null = null

  constructor(options: LocalDriverOptions) {
    this.#options = options
    this.#tools = new ToolsDirectory(join(options.dataDir, 'sandbox', 'opt'), PROGRAM, TOOLS)
  }

  async probe(): Promise<IsolationProbe> {
    const program = this.#program()
    if (program === null) return { available: false, ...MISSING }
    const { dataDir } = this.#options
    const place = { id: 'probe', workspace: dataDir, tmpBytes: RUN_BYTES }
    // A start waits for this: it mounts what is there already, and leaves it to the first server to write files.
    const fixed = this.#makeFixedArgs({ etc: '/etc', directories: [], tools: dataDir })
    const { code, said } = await runOnce(this.#plan(program, fixed, place, ['/bin/sh', '-c', ':']))
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

  async launch({ id, workspace, limits }: ServerToStart): Promise<Launch> {
    const program = this.#program()
    if (program === null) throw new ComputeError(`${MISSING.reason} ${MISSING.remedy}`)
    const tmpBytes = Math.floor(Math.min(limits.memoryBytes / 4, MAX_TMP_BYTES))
    const main = this.#options.self.compiled ? [] : [`${SOURCES}/main.ts`]
    this.#fixed ??= this.#makeFixedArgs(this.#prepare())
    const plan = this.#plan(program, this.#fixed, { id, workspace, tmpBytes }, [
      PROGRAM,
      ...main,
      '__sandboxd',
    ])
    this.#etc?.refresh()
    const path = this.#tools.extend(plan.env.PATH ?? '')
    const commandEnv = baseEnvironment(WORKSPACE, USER, path, '/tmp')
    const descriptors = plan.reports ? { descriptors: 'sockets' as const } : {}
    return {
      ...plan,
      ...descriptors,
      workspace: WORKSPACE,
      commandEnv,
      tools: TOOLS,
      confinement: {
        systemCalls: canFilterSystemCalls(),
        procWrites: isRoot() && (await import('../sandboxd/confinement.ts')).canForbidProcWrites(),
      },
    }
  }

  #plan(
    program: string,
    { system, devices, own, path }: FixedArgs,
    place: SandboxMounts,
    inner: string[],
  ): SpawnPlan {
    const nesting = this.#nested === 'refused' ? [NO_NESTING] : []
    const ownNetwork = this.#chooseNetwork() === 'own'
    const network = ownNetwork ? ['--unshare-net', '--info-fd', String(REPORT_FD)] : []
    const settings = ownNetwork ? this.#settings.files : []
    const written = settings.flatMap(([path], index) => ['--file', String(FILES_FD + index), path])
    const all = [
      ...[AS_PROCESS_1, ...nesting, ...network, ...system, ...written, ...devices],
      ...[...memoryArgs(place), ...own, ...serverArgs(place)],
    ]
    return {
      argv: [program, '--args', '4', '--', ...inner],
      // bwrap stays as process 1, whose environment every command can read.
      env: { PATH: path },
      // Passed through a descriptor, because every process of the sandbox can read the command line.
      input: new TextEncoder().encode(all.map((argument) => `${argument}\0`).join('')),
      reports: ownNetwork,
      files: settings.map(([, contents]) => contents),
    }
  }

  /** Servers have their own network if the kernel tells the networks of sockets apart (SO_NETNS_COOKIE, Linux 5.14). */
  #chooseNetwork(): 'own' | 'shared' {
    this.#network ??= loadSocketCalls().network() === 0n ? 'shared' : 'own'
    return this.#network
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
      ...['--unshare-user', '--unshare-pid', '--unshare-ipc', '--unshare-uts', '--unshare-cgroup-try'],
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
      ...(isRoot() ? ownersFiles().flatMap((path) => ['--ro-bind', '/dev/null', path]) : []),
      ...['--dev', '/dev', '--size', String(RUN_BYTES), '--tmpfs', '/run'],
    ]
    // After /tmp and /run, because some of these paths may be below them.
    const own = [
      ...tools.directories.flatMap(bind),
      ...['--ro-bind', program, PROGRAM, '--ro-bind', toolsDirectory, TOOLS],
      // Set for sandboxd only: process 1 keeps bwrap's own environment.
      ...Object.entries(SANDBOXD_ENVIRONMENT).flatMap(([name, value]) => ['--setenv', name, value]),
      ...(sources === null ? [] : ['--ro-bind', sources, SOURCES]),
    ]
    return { system, devices, own, path: tools.path }
  }
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
}

function memoryArgs({ tmpBytes }: SandboxMounts): string[] {
  const size = String(tmpBytes)
  return ['--size', size, '--tmpfs', '/tmp', '--size', size, '--tmpfs', '/dev/shm']
}

function serverArgs({ id, workspace }: SandboxMounts): string[] {
  return [
    // The rest of bwrap's own file system is in memory without a limit, so nothing may be written there.
    ...['--bind', workspace, WORKSPACE, '--remount-ro', '/dev', '--remount-ro', '/'],
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

/** Why an isolation cannot be used, and what a person can do about it. */
interface Refusal {
  reason: string
  remedy: string
}

/** bwrap is not installed. */
const MISSING: Refusal = {
  reason: 'bubblewrap is not installed: there is no bwrap on PATH.',
  remedy:
    'Install it: apt-get install bubblewrap, dnf install bubblewrap, pacman -S bubblewrap or apk add bubblewrap.',
}

/** Turns bwrap's error output into cause and remedy. */
function explainFailure(said: string): Refusal {
  const reason = `bwrap failed: ${said === '' ? 'it said nothing' : said}`
  if (/mount proc|proc on .*newroot/i.test(said)) {
    return {
      reason,
      remedy:
        'A /proc of its own may not be mounted, as in an unprivileged container: start the container with --security-opt systempaths=unconfined.',
    }
  }
  if (!/namespace|Operation not permitted|Permission denied|uid map|No space/i.test(said)) {
    return { reason, remedy: 'Run the same bwrap by hand to see more; a newer bubblewrap may help.' }
  }
  if (setting('apparmor_restrict_unprivileged_userns') === '1') {
    return {
      reason,
      remedy:
        'AppArmor keeps programs from making user namespaces. Allow it to bwrap with a profile (apt-get install apparmor-profiles has one), or for all: sysctl kernel.apparmor_restrict_unprivileged_userns=0.',
    }
  }
  if (setting('unprivileged_userns_clone') === '0') {
    return { reason, remedy: 'User namespaces are switched off: sysctl kernel.unprivileged_userns_clone=1.' }
  }
  if (existsSync('/.dockerenv') || existsSync('/run/.containerenv')) {
    return {
      reason,
      remedy:
        'The container forbids namespaces: start it with --security-opt seccomp=unconfined --security-opt systempaths=unconfined (and apparmor=unconfined on Ubuntu).',
    }
  }
  return {
    reason,
    remedy:
      'User namespaces are refused: look at sysctl user.max_user_namespaces, and at the seccomp profile of a container.',
  }
}

function setting(name: string): string | null {
  try {
    return readFileSync(`/proc/sys/kernel/${name}`, 'utf8').trim()
  } catch {
    return null
  }
}
