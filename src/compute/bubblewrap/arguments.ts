import { versionFileOf } from '../../runtime/self.ts'
import type { ShownGroup } from '../limits/limiter.ts'
import { SANDBOXD_ENVIRONMENT } from '../local/isolation.ts'
import { WORKSPACE } from '../local/mount-tables.ts'
import { FILES_FD, REPORT_FD } from '../local/spawn.ts'
import type { SystemPath } from '../local/system-files.ts'
import { NO_NESTING } from './kernel-support.ts'
import { PROGRAM, SANDBOX_CACHES, type SharedMounts, SOURCES, TOOLS } from './shared-files.ts'

/**
 * Makes sandboxd process 1. The kernel keeps signals of the sandbox's processes from it, so no command can stop it and
 * then exceed its limits, or end it; and it cannot be traced, as bwrap's own process 1 can.
 */
const AS_PROCESS_1 = '--as-pid-1'

/** Size of /run, bytes. */
const RUN_BYTES = 16 * 2 ** 20

/** The sandbox that bwrap makes. */
export interface SandboxSpec {
  /** What every sandbox has mounted. */
  shared: SharedMounts
  /** Its host name. */
  hostname: string
  /** Absolute path of the server's workspace on this machine; null if it is attached later. */
  workspace: string | null
  /** Absolute path of its directory of caches, which is attached later if the workspace is. */
  caches: string
  /** Size of /tmp, and of /dev/shm, bytes. */
  memoryDirectoryBytes: number
  /** Its control groups, which are shown read-only. */
  groups: readonly ShownGroup[]
  /** Whether it has its own network, whose namespace bwrap reports on `REPORT_FD`. */
  ownNetwork: boolean
  /** Files of /proc/sys that bwrap writes: the first with what it reads on `FILES_FD`, each other on the next one. */
  settings: readonly string[]
  /**
   * Its user namespace. bwrap makes one with berth's user in it, in which commands cannot make further ones (`closed`) or
   * can (`nestable`); or it is `given` on the descriptor after those of `settings`.
   */
  userNamespace: 'closed' | 'nestable' | 'given'
}

/** Returns the options for bwrap(1), in the order in which it mounts: later mounts lie on earlier ones. */
export function bwrapArguments(sandbox: SandboxSpec): string[] {
  const { shared, userNamespace } = sandbox
  // To the kernel, the user of a namespace that bwrap makes is berth's, which may be root.
  const masked = userNamespace === 'given' ? [] : shared.rootsFiles
  return [
    AS_PROCESS_1,
    ...namespaces(sandbox),
    ...['--uid', '1000', '--gid', '1000', '--cap-drop', 'ALL', '--new-session', '--die-with-parent'],
    ...systemMounts(shared),
    ...['--proc', '/proc'],
    ...sandbox.settings.flatMap((path, index) => ['--file', String(FILES_FD + index), path]),
    // The kernel takes root in a sandbox that root started for root: it may change kernel settings without a
    // capability.
    ...['--ro-bind', '/proc/sys', '/proc/sys'],
    ...['--dev', '/dev', '--size', String(RUN_BYTES), '--tmpfs', '/run'],
    ...masked.flatMap((path) => ['--ro-bind', '/dev/null', path]),
    ...memoryDirectories(sandbox.memoryDirectoryBytes),
    // After /tmp and /run, because some of these paths may be below them.
    ...toolMounts(shared),
    // Set for sandboxd only: process 1 keeps bwrap's own environment.
    ...Object.entries(SANDBOXD_ENVIRONMENT).flatMap(([name, value]) => ['--setenv', name, value]),
    ...sandbox.groups.flatMap(({ dir, path }) => ['--ro-bind-try', dir, path]),
    // The rest of bwrap's own file system is in memory without a limit, so nothing may be written there.
    ...(sandbox.workspace === null
      ? ['--dir', WORKSPACE, '--dir', SANDBOX_CACHES]
      : ['--bind', sandbox.workspace, WORKSPACE, '--bind', sandbox.caches, SANDBOX_CACHES]),
    ...['--remount-ro', '/dev', '--remount-ro', '/'],
    ...['--hostname', sandbox.hostname, '--chdir', '/'],
  ]
}

function namespaces({ userNamespace, settings, ownNetwork }: SandboxSpec): string[] {
  const ofUsers = {
    closed: ['--unshare-user', NO_NESTING],
    nestable: ['--unshare-user'],
    given: ['--userns', String(FILES_FD + settings.length)],
  }
  return [
    ...ofUsers[userNamespace],
    ...(ownNetwork ? ['--unshare-net', '--info-fd', String(REPORT_FD)] : []),
    ...['--unshare-pid', '--unshare-ipc', '--unshare-uts', '--unshare-cgroup-try'],
  ]
}

function systemMounts({ systemDirectories, etc, etcDirectories }: SharedMounts): string[] {
  return [
    ...['--ro-bind', '/usr', '/usr'],
    ...systemDirectories.flatMap(linkOrBind),
    ...['--ro-bind', etc, '/etc'],
    ...etcDirectories.flatMap(bind),
  ]
}

function memoryDirectories(bytes: number): string[] {
  return ['/tmp', '/dev/shm'].flatMap((path) => ['--size', String(bytes), '--tmpfs', path])
}

function toolMounts({ machineTools, program, sources, tools }: SharedMounts): string[] {
  return [
    ...machineTools.flatMap((tool) =>
      tool.real === tool.path ? bind(tool) : ['--symlink', tool.real, tool.path],
    ),
    ...['--ro-bind', program, PROGRAM, '--ro-bind', tools, TOOLS],
    ...(sources === null
      ? []
      : ['--ro-bind', sources, SOURCES, '--ro-bind', versionFileOf(sources), versionFileOf(SOURCES)]),
  ]
}

function bind({ path, real }: SystemPath): string[] {
  return ['--ro-bind', real, path]
}

/** Keeps a link into /usr a link, so a path means the same inside and outside. */
function linkOrBind(dir: SystemPath): string[] {
  return dir.real === dir.path ? bind(dir) : ['--symlink', dir.real.slice(1), dir.path]
}
