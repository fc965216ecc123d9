import { join } from 'node:path'
import {
  AGENT_ENVIRONMENT,
  baseEnvironment,
  type Launch,
  type LocalDriverOptions,
  type ServerToStart,
  type Tier,
  type TierProbe,
} from '../local/tier.ts'
import { ToolsFolder } from '../local/tools-folder.ts'
import { userName } from '../local/user.ts'
import { agentArguments } from '../processes.ts'
import { selfFiles } from '../self.ts'

/** No isolation: commands run with the rights of the user who started berth, in a clean environment. */
export class PlainTier implements Tier {
  readonly name = 'none'
  readonly userNamespace = false
  readonly #options: LocalDriverOptions
  readonly #tools: ToolsFolder

  constructor(options: LocalDriverOptions) {
    this.#options = options
    this.#tools = new ToolsFolder(join(options.dataDir, 'sandbox', 'tools'), selfFiles(options.self).program)
  }

  async probe(): Promise<TierProbe> {
    return { available: true, network: 'shared with this machine' }
  }

  async launch({ workspace, marker }: ServerToStart): Promise<Launch> {
    const { self, path } = this.#options
    this.#tools.prepare()
    return {
      argv: [...self.argv, ...agentArguments(marker)],
      env: { PATH: path, ...AGENT_ENVIRONMENT },
      workspace,
      commandEnv: baseEnvironment(workspace, userName(), this.#tools.extend(path), '/tmp'),
      tools: this.#tools.seenAs,
      pidNamespace: false,
    }
  }
}
