import { existsSync } from 'node:fs'
import { dirname } from 'node:path'
import { realPathOrNull } from '../../runtime/if-present.ts'
import { selfFiles, versionFileOf } from '../../runtime/self.ts'
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
import { runOnce } from '../local/spawn.ts'
import type { ToolsDirectory } from '../local/tools-directory.ts'
import { seatbeltProfile } from './profile.ts'

const PROGRAM = '/usr/bin/sandbox-exec'

/** Ways in which it is weaker than its name promises. */
const NOTES = [
  'berth was built for macOS, but those who make it have never run it there: what a server may do is known from the text of its profile alone',
  "a program that replaces a directory by a link at the right moment can have berth copy, move or remove one of the user's files",
  'a program whose parents end at once, and which leaves its session, may go on when its server ends',
  "the network is this machine's, and of what a server reaches only loopback and ports can be told apart",
  "commands see the numbers of other processes, and lists of a server's processes have names without arguments",
]

/**
 * Isolation by Seatbelt of macOS: the user's own rights, less all files but the system's and the server's own, and less the
 * services of the system but a few. Apple calls sandbox-exec(1) deprecated, and documents no profiles.
 */
export class SeatbeltIsolation implements LocalIsolation {
  readonly name = 'seatbelt'
  readonly namespaces = false
  /** There are no control groups. */
  readonly keepsGroups = false
  readonly #options: LocalDriverOptions
  readonly #tools: ToolsDirectory

  constructor(options: LocalDriverOptions) {
    this.#options = options
    this.#tools = hostTools(options)
  }

  async probe(): Promise<IsolationProbe> {
    if (!existsSync(PROGRAM)) {
      return { available: false, reason: `There is no ${PROGRAM}.`, remedy: 'It is a part of macOS.' }
    }
    const { dataDir, path } = this.#options
    // Tries, under the real rules, an access that must fail: listing the data directory.
    const script = 'ls "$0" >/dev/null 2>&1 && exit 3; exit 0'
    const argv = this.#argv([], ['/bin/sh', '-c', script, realPathOrNull(dataDir) ?? dataDir])
    const { code, said } = await runOnce({ argv, env: { PATH: path } })
    if (code === 0) return { available: true, network: 'shared', notes: NOTES }
    const reason = code === 3 ? 'Seatbelt is there but hides nothing.' : `sandbox-exec failed: ${said}`
    return {
      available: false,
      reason,
      remedy: 'Start berth outside of another sandbox: Seatbelt does not nest.',
    }
  }

  async launch(server: ServerToStart): Promise<Launch> {
    const tmp = await emptyDirectory(server.dir, 'tmp')
    const path = selectMachineTools(this.#options).path.join(':')
    const launch = hostLaunch(this.#options, this.#tools, server, { path, tmp, sees: 'selected' })
    const write = [server.workspace, server.caches, tmp].map((one) => realPathOrNull(one) ?? one)
    return {
      ...launch,
      argv: this.#argv(write, launch.argv),
      // sandboxd keeps long input in a file of its temporary directory.
      env: { ...launch.env, TMPDIR: tmp },
    }
  }

  #argv(write: readonly string[], command: readonly string[]): string[] {
    const { program, sources } = selfFiles(this.#options.self)
    const etc = selectEtc()
    const shown = [...etc.directories, ...etc.files, ...selectMachineTools(this.#options).shown]
    const own = [program, this.#tools.path, ...(sources === null ? [] : [sources, versionFileOf(sources)])]
    const profile = seatbeltProfile({
      read: [...shown.map(({ real }) => real), ...own.map((one) => realPathOrNull(one) ?? one)],
      list: [...etc.partial, ...(sources === null ? [] : [dirname(sources)])].map(
        (one) => realPathOrNull(one) ?? one,
      ),
      write,
      outbound: this.#options.outbound,
    })
    return [PROGRAM, '-p', profile, ...command]
  }
}
