import { join, posix } from 'node:path'
import { NPM_SETTINGS_FILE, NPM_VARIABLES } from '../../compute/npm-settings.ts'
import type { Workspace } from '../../compute/workspace.ts'
import { fieldsOf } from '../../runtime/is-object.ts'
import { parseToml } from '../../runtime/toml.ts'

/** Most bytes of a file with settings of a package manager. A larger one counts as empty. */
const MAX_SETTINGS_BYTES = 1024 * 1024

/** The directory in which a command installs packages. */
export interface InstallTarget {
  /** The directory of tools of the sandbox (`Sandbox.tools`). */
  readonly tools: string
  readonly workspace: Pick<Workspace, 'read'>
  /** Working directory of the command, relative to the workspace; empty for the workspace itself. */
  readonly directory: string
}

/** The mirror as a server reaches it. */
interface MirrorAccess {
  /** The directory of tools of the sandbox. */
  readonly tools: string
  readonly origin: string
  readonly token: string
}

/**
 * Returns the variables that are safe in every directory. npm, and pnpm up to 10, read them from npm's global settings,
 * over which the project's and the user's settings take precedence. The server's own Bun looks for such settings itself.
 */
export const commandEnvironment = ({ tools, origin, token }: MirrorAccess): Record<string, string> => ({
  [NPM_VARIABLES.url]: `${origin}/`,
  [NPM_VARIABLES.host]: new URL(origin).host,
  [NPM_VARIABLES.token]: token,
  npm_config_globalconfig: join(tools, NPM_SETTINGS_FILE),
  COREPACK_NPM_REGISTRY: origin,
  COREPACK_NPM_TOKEN: token,
  COREPACK_ENABLE_DOWNLOAD_PROMPT: '0',
})

/**
 * Returns the variables that make package managers use the mirror in a directory.
 *
 * For Bun, Yarn and pnpm from 11 on, variables override files, so they are omitted if a file names another registry. Yarn
 * 1 reads credentials only from the user's own file and therefore uses the registry directly.
 */
export async function installEnvironment(
  target: InstallTarget & MirrorAccess,
): Promise<Record<string, string>> {
  const { tools, origin, token } = target
  const custom = await customRegistries(target)
  return {
    ...commandEnvironment(target),
    ...(custom.userSettings ? {} : { pnpm_config_npmrc_auth_file: join(tools, NPM_SETTINGS_FILE) }),
    ...(custom.bun ? {} : { BUN_CONFIG_REGISTRY: `${origin}/`, BUN_CONFIG_TOKEN: token }),
    ...(custom.yarn ? {} : yarnEnvironment(origin, token)),
  }
}

const yarnEnvironment = (origin: string, token: string): Record<string, string> => ({
  YARN_NPM_REGISTRY_SERVER: origin,
  YARN_NPM_AUTH_TOKEN: token,
  YARN_NPM_ALWAYS_AUTH: 'true',
  YARN_UNSAFE_HTTP_WHITELIST: new URL(origin).hostname,
})

/**
 * Reports which package managers have a registry configured by the project or the user, in the directory or above it.
 */
async function customRegistries({
  workspace,
  directory,
}: InstallTarget): Promise<{ bun: boolean; yarn: boolean; userSettings: boolean }> {
  const read = async (path: string): Promise<string> => {
    try {
      return new TextDecoder().decode(await workspace.read(path, MAX_SETTINGS_BYTES))
    } catch {
      // There is none, so it sets no registry.
      return ''
    }
  }
  let bun = false
  let yarn = false
  for (const one of withParents(directory)) {
    bun ||= /^[ \t]*registry\s*=/m.test(await read(posix.join(one, '.npmrc')))
    // Only the user's settings of Bun, in the home directory, may begin with a dot.
    for (const name of one === '' ? ['bunfig.toml', '.bunfig.toml'] : ['bunfig.toml']) {
      bun ||= namesRegistry(await read(posix.join(one, name)))
    }
    yarn ||= /^npmRegistryServer\s*:/m.test(await read(posix.join(one, '.yarnrc.yml')))
  }
  return { bun, yarn, userSettings: (await read('.npmrc')) !== '' }
}

function namesRegistry(bunfig: string): boolean {
  try {
    return fieldsOf(parseToml(bunfig).install).registry !== undefined
  } catch {
    // Bun itself reports the mistake.
    return false
  }
}

/** Returns a directory and its parents up to the workspace, whose name is empty. */
function withParents(directory: string): string[] {
  const parts = directory.split('/').filter((part) => part !== '' && part !== '.')
  return [...parts.map((_, index) => parts.slice(0, parts.length - index).join('/')), '']
}
