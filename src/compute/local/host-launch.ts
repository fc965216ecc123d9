import { mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { selfFiles } from '../../runtime/self.ts'
import { holdsInodes } from '../../system/files.ts'
import { sandboxdArguments } from '../processes.ts'
import { UNCONFINED } from '../sandboxd/protocol.ts'
import {
  baseEnvironment,
  type Launch,
  type LocalDriverOptions,
  SANDBOXD_ENVIRONMENT,
  type ServerToStart,
  toolchainsOf,
} from './isolation.ts'
import { pinRoot } from './pinned.ts'
import { isOn, ToolsDirectory } from './tools-directory.ts'
import { removeTreeEntry } from './tree.ts'

/** Returns the tools for commands that see this machine's own file tree. */
export const hostTools = ({ dataDir, self }: LocalDriverOptions): ToolsDirectory =>
  new ToolsDirectory(join(dataDir, 'sandbox', 'tools'), selfFiles(self).program)

/**
 * Returns how to start sandboxd without namespaces: as the user who started berth, in this machine's own file tree.
 *
 * @param path the PATH of commands, without the tools
 * @param tmp absolute path of the directory for temporary files
 * @param sees what of the machine's tools commands see: see `selectMachineTools`
 */
export function hostLaunch(
  options: LocalDriverOptions,
  tools: ToolsDirectory,
  { workspace, caches, marker }: ServerToStart,
  { path, tmp, sees }: { path: string; tmp: string; sees: 'selected' | 'all' },
): Launch {
  const { self } = options
  tools.prepare(isOn(path))
  return {
    argv: [...self.argv, ...sandboxdArguments(marker)],
    env: { PATH: path, ...SANDBOXD_ENVIRONMENT },
    workspace,
    commandEnv: baseEnvironment(workspace, userName(), tools.extend(path, workspace), tmp),
    tools: tools.pathInSandbox,
    caches,
    toolchains: toolchainsOf(options, sees),
    confinement: UNCONFINED,
  }
}

/** Creates an empty directory, after removing what an earlier start left there. */
export async function emptyDirectory(parent: string, name: string): Promise<string> {
  using pinned = pinRoot(parent, holdsInodes)
  await removeTreeEntry(pinned, name)
  mkdirSync(join(parent, name), { mode: 0o700 })
  return join(parent, name)
}

/**
 * Returns the name of the user that this process runs as, by its uid: the environment, which Bun's `os.userInfo`
 * trusts, may name another user or none.
 */
function userName(): string {
  const uid = String(process.getuid?.() ?? 0)
  try {
    for (const line of readFileSync('/etc/passwd', 'utf8').split('\n')) {
      const [name, , id] = line.split(':')
      if (name && id === uid) return name
    }
  } catch {
    // A container without a user list.
  }
  return uid === '0' ? 'root' : 'user'
}
