import { existsSync, realpathSync } from 'node:fs'
import { readTextOrNull } from '../../runtime/if-present.ts'
import { once } from '../../runtime/once.ts'
import { canFilterSystemCalls } from '../../system/linux/seccomp-filter.ts'
import {
  baseEnvironment,
  type IsolationProbe,
  type Launch,
  type LocalDriverOptions,
  type LocalIsolation,
  type ServerToStart,
  toolchainsOf,
} from '../local/isolation.ts'
import { WORKSPACE } from '../local/mount-tables.ts'
import { loadSocketCalls, OWN_IPV4 } from '../local/network/socket-calls.ts'
import { dataMarkerOf, serverMarkerOf } from '../local/server-directories.ts'
import { runOnce, type SpawnPlan } from '../local/spawn.ts'
import { sandboxdArguments } from '../processes.ts'
import { ComputeError } from '../sandbox.ts'
import { bwrapArguments, type SandboxSpec } from './arguments.ts'
import { KernelSupport } from './kernel-support.ts'
import { type OwnUser, OwnUsers } from './own-users.ts'
import { TerminalLimit } from './pseudo-terminals.ts'
import { PROGRAM, SANDBOX_CACHES, SharedFiles, SOURCES, TOOLS, USER } from './shared-files.ts'

/**
 * Largest /tmp, bytes. It is in memory, and counts as such: a server with less than four times this gets a quarter of
 * its memory, as it gets for /dev/shm.
 * @bound program
 */
const MAX_TMP_BYTES = 2 ** 31

/** Size of /tmp in the sandbox that the probe makes, bytes. */
const PROBE_TMP_BYTES = 2 ** 24

const ABSTRACT_SOCKETS_NOTE =
  "commands reach abstract Unix sockets of the user's programs, since there is no network of their own, and no Landlock of Linux 6.12 or later"

/** In a user namespace that bwrap does not make: no further ones below it. bwrap writes it as `KernelSettings`. */
const NO_NAMESPACES: [path: string, contents: Uint8Array] = [
  '/proc/sys/user/max_user_namespaces',
  new TextEncoder().encode('0'),
]

/**
 * Isolates a server by namespaces: its own file tree and processes, no capabilities, and a network of its own if the
 * kernel permits that, else the machine's. See bwrap(1).
 */
export class BubblewrapIsolation implements LocalIsolation {
  readonly name = 'bubblewrap'
  readonly namespaces = true
  readonly keepsGroups = true
  readonly #options: LocalDriverOptions
  readonly #calls = once(loadSocketCalls)
  readonly #files: SharedFiles
  readonly #support: KernelSupport
  readonly #users: OwnUsers
  readonly #terminals: TerminalLimit

  constructor(options: LocalDriverOptions) {
    this.#options = options
    this.#files = new SharedFiles(options)
    this.#support = new KernelSupport(this.#calls)
    this.#users = new OwnUsers(options)
    this.#terminals = new TerminalLimit(this.#calls, options.path)
  }

  async probe(): Promise<IsolationProbe> {
    const program = this.#program()
    if (program === null) return { available: false, ...MISSING }
    const { dataDir } = this.#options
    const hostname = 'probe'
    const shared = this.#files.forProbe()
    const marker = serverMarkerOf(dataMarkerOf(realpathSync(dataDir)), hostname)
    const command = ['/bin/sh', '-c', ':', ...sandboxdArguments(marker)]
    const mounts = {
      shared,
      hostname,
      workspace: dataDir,
      caches: dataDir,
      memoryDirectoryBytes: PROBE_TMP_BYTES,
      groups: [],
    }
    for (;;) {
      const { code, said } = await runOnce(this.#plan(program, mounts, null, command))
      if (code === 0) return { available: true, network: this.#support.network, notes: await this.#notes() }
      if (!this.#support.reduce(said)) return { available: false, ...explainFailure(said) }
    }
  }

  async launch(server: ServerToStart): Promise<Launch> {
    const user = await this.#users.take({ [WORKSPACE]: server.workspace, [SANDBOX_CACHES]: server.caches })
    if (user === null) return this.#launchAs(null, server)
    const { attachWorkspace, release } = user
    const fallback = {
      launch: () => this.#launchAs(null, server),
      keep: (reason: string) => this.#users.giveUp(reason),
    }
    const launchUser = { attachWorkspace, release, fallback: this.#users.areProven ? null : fallback }
    try {
      return { ...(await this.#launchAs(user, server)), user: launchUser }
    } catch (error) {
      release()
      throw error
    }
  }

  /** @param user the sandbox's own user; null if it has berth's */
  async #launchAs(user: OwnUser | null, server: ServerToStart): Promise<Launch> {
    const program = this.#program()
    if (program === null) throw new ComputeError(`${MISSING.reason} ${MISSING.remedy}`)
    const shared = this.#files.forServer(this.#support.network === 'own' ? OWN_IPV4 : null)
    const mounts = {
      shared,
      hostname: server.id,
      workspace: server.workspace,
      caches: server.caches,
      memoryDirectoryBytes: Math.floor(Math.min(server.limits.memoryBytes / 4, MAX_TMP_BYTES)),
      groups: server.groups,
    }
    const sandboxd = [PROGRAM, ...(this.#options.self.compiled ? [] : [`${SOURCES}/main.ts`])]
    const plan = this.#plan(program, mounts, user, [...sandboxd, ...sandboxdArguments(server.marker)])
    return {
      ...plan,
      ...(plan.reports === undefined ? {} : { descriptors: 'sockets' }),
      workspace: WORKSPACE,
      commandEnv: baseEnvironment(WORKSPACE, USER, this.#files.commandPath(shared), '/tmp'),
      tools: TOOLS,
      caches: SANDBOX_CACHES,
      toolchains: toolchainsOf(this.#options, 'selected'),
      limitTerminals: (pid) => this.#terminals.limit(pid),
      confinement: {
        systemCalls: canFilterSystemCalls(),
        unixSockets: false,
        setIdBits: false,
        procWrites:
          process.getuid?.() === 0 &&
          user === null &&
          (await import('../../system/linux/confinement.ts')).canForbidProcWrites(),
        abstractSockets: this.#support.network === 'shared' && (await canHideSockets()),
      },
    }
  }

  /**
   * Returns how to start bwrap.
   *
   * @param mounts what differs between sandboxes
   * @param user the sandbox's own user; null if it has berth's
   * @param command the command that runs in the sandbox
   */
  #plan(program: string, mounts: Mounts, user: OwnUser | null, command: string[]): SpawnPlan {
    const { network, canForbidNesting } = this.#support
    const settings = [...this.#support.settings, ...(user === null ? [] : [NO_NAMESPACES])]
    const made = canForbidNesting ? 'closed' : 'nestable'
    const all = bwrapArguments({
      ...mounts,
      // A user of its own reaches the workspace by a mount that is attached when the sandbox is there.
      workspace: user === null ? mounts.workspace : null,
      ownNetwork: network === 'own',
      settings: settings.map(([path]) => path),
      userNamespace: user === null ? made : 'given',
    })
    return {
      argv: [...(user?.become ?? []), program, '--args', '4', '--', ...command],
      // bwrap stays as process 1, whose environment every command can read.
      env: { PATH: mounts.shared.path },
      // Passed through a descriptor, because every process of the sandbox can read the command line.
      input: new TextEncoder().encode(all.map((argument) => `${argument}\0`).join('')),
      ...(network === 'own' ? { reports: () => this.#calls().pair() } : {}),
      files: settings.map(([, contents]) => contents),
      ...(user === null ? {} : { userNamespace: user.namespace }),
    }
  }

  async #notes(): Promise<string[]> {
    const shown = this.#support.network === 'shared' && !(await canHideSockets())
    return [...this.#support.notes, ...(shown ? [ABSTRACT_SOCKETS_NOTE] : [])]
  }

  #program(): string | null {
    return Bun.which('bwrap', { PATH: this.#options.path })
  }
}

/** Reports whether abstract Unix sockets of the network that a sandbox shares can be kept from it. */
const canHideSockets = async (): Promise<boolean> =>
  (await import('../../system/linux/confinement.ts')).canHideAbstractSockets()

/** The part of a sandbox that differs between servers, whatever the kernel supports. */
type Mounts = Pick<SandboxSpec, 'shared' | 'hostname' | 'caches' | 'memoryDirectoryBytes' | 'groups'> & {
  workspace: string
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

const setting = (name: string): string | undefined => readTextOrNull(`/proc/sys/kernel/${name}`)?.trim()
