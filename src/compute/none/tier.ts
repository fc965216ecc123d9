import {
  AGENT_ENVIRONMENT,
  baseEnvironment,
  type Launch,
  type LocalDriverOptions,
  type ServerToStart,
  type Tier,
  type TierProbe,
} from '../local/tier.ts'
import { userName } from '../local/user.ts'
import { agentArguments } from '../processes.ts'

/** No isolation: commands run with the rights of the user who started berth, in a clean environment. */
export class PlainTier implements Tier {
  readonly name = 'none'
  readonly userNamespace = false
  readonly #options: LocalDriverOptions

  constructor(options: LocalDriverOptions) {
    this.#options = options
  }

  async probe(): Promise<TierProbe> {
    return { available: true, network: 'shared with this machine' }
  }

  async launch({ workspace, marker }: ServerToStart): Promise<Launch> {
    const { self, path } = this.#options
    return {
      argv: [...self.argv, ...agentArguments(marker)],
      env: { PATH: path, ...AGENT_ENVIRONMENT },
      workspace,
      commandEnv: baseEnvironment(workspace, userName(), path, '/tmp'),
      pidNamespace: false,
    }
  }
}
