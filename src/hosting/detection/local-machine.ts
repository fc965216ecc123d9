import { delimiter, dirname, join } from 'node:path'
import {
  commandOf,
  findToolchains,
  isShown,
  isToolName,
  PROGRAM_NAMES,
  type PrintedVersions,
  selectMachineTools,
  type Toolchain,
  type ToolPlaces,
  versionArguments,
} from '../../compute/tools.ts'
import { messageOf } from '../../runtime/error-info.ts'
import { realPathOrNull } from '../../runtime/if-present.ts'
import { runHelper } from '../../runtime/run-helper.ts'
import { checkOf, type Machine, type ToolCheck } from './machine.ts'

/** Programs that every server has from berth. */
const OF_BERTH: readonly string[] = ['bun', 'bunx', 'node', ...PROGRAM_NAMES]

/** Milliseconds that a program may take to print its version. */
const VERSION_MS = 10_000

/** The tools of this machine as a new server would see them, without a server. */
export class LocalMachine implements Machine {
  readonly #places: ToolPlaces
  readonly #sees: 'selected' | 'all'
  readonly #printed: PrintedVersions = new Map()
  readonly memoryBytes = null

  /** @param sees what servers see of the machine: see `selectMachineTools` */
  constructor(places: ToolPlaces, sees: 'selected' | 'all' = 'selected') {
    this.#places = places
    this.#sees = sees
  }

  async has(name: string): Promise<boolean> {
    return OF_BERTH.includes(name) || this.#find(name === 'python' ? 'python3' : name) !== null
  }

  async toolchains(tool: string): Promise<readonly Toolchain[]> {
    if (isToolName(tool)) {
      const found = await findToolchains(this.#places, {
        sees: this.#sees,
        of: [tool],
        printed: this.#printed,
      })
      if (found.length > 0) return found
    }
    const path = this.#find(commandOf(tool))
    const check = path === null ? null : await this.check(path)
    if (path === null || check === null || !check.works || check.version === null) return []
    return [{ tool, version: check.version, path, bin: dirname(path), isDefault: true, source: 'PATH' }]
  }

  async check(program: string, options?: readonly string[]): Promise<ToolCheck> {
    const path = program.startsWith('/') ? program : this.#find(program)
    if (path === null) return { works: false, error: `${program}: not found` }
    try {
      const result = await runHelper([path, ...(options ?? versionArguments(path))], {
        cwd: '/',
        // As in a server: no settings of the person's.
        env: { PATH: this.#path.join(delimiter), HOME: '/nonexistent' },
        timeoutMs: VERSION_MS,
      })
      return checkOf(result)
    } catch (error) {
      return { works: false, error: messageOf(error) }
    }
  }

  get #path(): readonly string[] {
    return selectMachineTools(this.#places, this.#sees).path
  }

  /** Returns the path of a program that servers see; null if there is none. */
  #find(name: string): string | null {
    const { path, shown } = selectMachineTools(this.#places, this.#sees)
    for (const directory of path) {
      const program = Bun.which(name, { PATH: directory })
      const real = program === null ? null : realPathOrNull(program)
      if (real !== null && (this.#sees === 'all' || isShown(real, shown))) return join(directory, name)
    }
    return null
  }
}
