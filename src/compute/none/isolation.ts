import { join } from 'node:path'
import {
  baseEnvironment,
  type IsolationProbe,
  type Launch,
  type LocalDriverOptions,
  type LocalIsolation,
  SANDBOXD_ENVIRONMENT,
  type ServerToStart,
} from '../local/isolation.ts'
import { ToolsDirectory } from '../local/tools-directory.ts'
import { userName } from '../local/user.ts'
import { sandboxdArguments } from '../processes.ts'
import { selfFiles } from '../self.ts'

/** Applies no isolation: commands run with the rights of the user who started berth, in a clean environment. */
export class NoIsolation implements LocalIsolation {
  readonly name = 'none'
  readonly userNamespace = false
  readonly #options: LocalDriverOptions
  readonly #tools: ToolsDirectory

  constructor(options: LocalDriverOptions) {
    this.#options = options
    this.#tools = new ToolsDirectory(
      join(options.dataDir, 'sandbox', 'tools'),
      selfFiles(options.self).program,
    )
  }

  async probe(): Promise<IsolationProbe> {
    return { available: true, network: 'shared with this machine' }
  }

  async launch({ workspace, marker }: ServerToStart): Promise<Launch> {
    const { self, path } = this.#options
    this.#tools.prepare()
    return {
      argv: [...self.argv, ...sandboxdArguments(marker)],
      env: { PATH: path, ...SANDBOXD_ENVIRONMENT },
      workspace,
      commandEnv: baseEnvironment(workspace, userName(), this.#tools.extend(path), '/tmp'),
      tools: this.#tools.pathInSandbox,
      pidNamespace: false,
    }
  }
}
