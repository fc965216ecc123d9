import { hostLaunch, hostTools } from '../local/host-launch.ts'
import type {
  IsolationProbe,
  Launch,
  LocalDriverOptions,
  LocalIsolation,
  ServerToStart,
} from '../local/isolation.ts'
import { selectMachineTools } from '../local/machine-tools.ts'
import type { ToolsDirectory } from '../local/tools-directory.ts'

/** Applies no isolation: commands run with the rights of the user who started berth, in a clean environment. */
export class NoIsolation implements LocalIsolation {
  readonly name = 'none'
  readonly namespaces = false
  /** A command may write to the control groups that berth writes to. */
  readonly keepsGroups = false
  readonly #options: LocalDriverOptions
  readonly #tools: ToolsDirectory

  constructor(options: LocalDriverOptions) {
    this.#options = options
    this.#tools = hostTools(options)
  }

  async probe(): Promise<IsolationProbe> {
    return { available: true, network: 'shared' }
  }

  async launch(server: ServerToStart): Promise<Launch> {
    const { path } = selectMachineTools(this.#options, 'all')
    return hostLaunch(this.#options, this.#tools, server, { path: path.join(':'), tmp: '/tmp', sees: 'all' })
  }
}
