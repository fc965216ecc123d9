import { join, posix } from 'node:path'
import { PACKAGE_VARIABLES, type SandboxPaths } from '../../compute/sandbox.ts'
import { MAVEN_SETTINGS_DIRECTORY, NPM_SETTINGS_FILE, RUBY_SETTINGS_FILE } from '../../compute/tools.ts'
import type { Workspace } from '../../compute/workspace.ts'
import { fieldsOf } from '../../runtime/is-object.ts'
import { parseToml } from '../../runtime/toml.ts'
import type { MachineRegistries } from './machine-registries.ts'
import { readMavenWrapper, WRAPPER_SETTINGS } from './maven-wrapper.ts'

/** Most bytes of a file with settings of a package manager. A larger one counts as empty. @bound owner */
const MAX_SETTINGS_BYTES = 1024 * 1024

/** The directory in which a command installs packages. */
export interface InstallTarget {
  /** The sandbox's directories. */
  readonly paths: SandboxPaths
  readonly workspace: Pick<Workspace, 'read'>
  /** Working directory of the command, relative to the workspace; empty for the workspace itself. */
  readonly directory: string
}

/** The relay as a server reaches it. */
export interface RelayAccess {
  /** The sandbox's directories. */
  readonly paths: SandboxPaths
  readonly origin: string
  readonly token: string
  readonly machine: Pick<MachineRegistries, 'mounts' | 'goProxy' | 'mavenMirrorOf'>
}

/** Returns the address of a registry in the relay, without a trailing slash. */
export const addressIn = ({ origin, token }: Pick<RelayAccess, 'origin' | 'token'>, mount: string): string =>
  `${origin}/-/${token}/${mount}`

/**
 * Returns the variables that are safe in every directory. npm, and pnpm up to 10, read them from npm's global settings, and
 * Maven from its own, over which the project's and the user's settings take precedence. The server's own Bun and uv look for
 * such settings themselves.
 */
export function commandEnvironment(access: RelayAccess): Record<string, string> {
  const { paths, origin, token, machine } = access
  const pypi = `${addressIn(access, 'pypi')}/simple/`
  const maven = addressIn(access, 'maven')
  return {
    [PACKAGE_VARIABLES.url]: `${origin}/`,
    [PACKAGE_VARIABLES.host]: new URL(origin).host,
    [PACKAGE_VARIABLES.token]: token,
    npm_config_globalconfig: join(paths.tools, NPM_SETTINGS_FILE),
    COREPACK_NPM_REGISTRY: origin,
    COREPACK_NPM_TOKEN: token,
    COREPACK_ENABLE_DOWNLOAD_PROMPT: '0',
    PIP_INDEX_URL: pypi,
    PIP_DISABLE_PIP_VERSION_CHECK: '1',
    PIPENV_PYPI_MIRROR: pypi,
    POETRY_PYPI_MIRROR_URL: pypi,
    PDM_PYPI_URL: pypi,
    GOPROXY: machine.goProxy.replace(/\{([\w-]+)\}/g, (_, mount) => addressIn(access, mount)),
    [PACKAGE_VARIABLES.maven]: maven,
    [PACKAGE_VARIABLES.mavenMirrorOf]: machine.mavenMirrorOf,
    RUBYOPT: `-r${join(paths.tools, RUBY_SETTINGS_FILE)}`,
    MAVEN_OPTS: `-Dmaven.conf=${join(paths.tools, MAVEN_SETTINGS_DIRECTORY)}`,
  }
}

/** Returns the variables that make package managers and compilers keep their caches in a server's own directory of them. */
export const cacheEnvironment = ({ caches, home }: SandboxPaths): Record<string, string> => ({
  [PACKAGE_VARIABLES.caches]: caches,
  npm_config_cache: `${caches}/npm`,
  pnpm_config_store_dir: `${caches}/pnpm`,
  YARN_CACHE_FOLDER: `${caches}/yarn`,
  YARN_GLOBAL_FOLDER: `${caches}/yarn-berry`,
  BUN_INSTALL_CACHE_DIR: `${caches}/bun`,
  PIP_CACHE_DIR: `${caches}/pip`,
  UV_CACHE_DIR: `${caches}/uv`,
  // Caches may be on another mount, where there are no hard links to them.
  UV_LINK_MODE: 'copy',
  POETRY_CACHE_DIR: `${caches}/poetry`,
  POETRY_VIRTUALENVS_IN_PROJECT: 'true',
  PIPENV_CACHE_DIR: `${caches}/pipenv`,
  PIPENV_VENV_IN_PROJECT: '1',
  GOCACHE: `${caches}/go-build`,
  GOMODCACHE: `${caches}/go-mod`,
  CARGO_HOME: `${caches}/cargo`,
  CARGO_INSTALL_ROOT: `${home}/.cargo`,
  PNPM_HOME: `${home}/.local/share/pnpm`,
  GRADLE_USER_HOME: `${caches}/gradle`,
  COMPOSER_CACHE_DIR: `${caches}/composer`,
  BUNDLE_USER_CACHE: `${caches}/bundler`,
})

/** Returns Cargo's settings, which it takes from no variable: crates.io is replaced by the relay. */
export const cargoSettings = (access: Pick<RelayAccess, 'origin' | 'token'>): string => `[source.crates-io]
replace-with = "berth"

[source.berth]
registry = "sparse+${addressIn(access, 'crates')}/"
`

/**
 * Returns the variables that make package managers use the relay in a directory.
 *
 * For Bun, Yarn and pnpm from 11 on, variables override files, so they are omitted if a file names another registry. Yarn
 * 1 reads credentials only from the user's own file and therefore uses the registry directly.
 */
export async function installEnvironment(
  target: InstallTarget & RelayAccess,
): Promise<Record<string, string>> {
  const { paths, origin, token } = target
  const custom = await customRegistries(target)
  return {
    ...commandEnvironment(target),
    ...(custom.publicByFile ? { npm_config_registry: `${origin}/` } : {}),
    ...(custom.userSettings ? {} : { pnpm_config_npmrc_auth_file: join(paths.tools, NPM_SETTINGS_FILE) }),
    ...(custom.bun ? {} : { BUN_CONFIG_REGISTRY: `${origin}/`, BUN_CONFIG_TOKEN: token }),
    ...(custom.yarn ? {} : yarnEnvironment(origin, token)),
    ...((await hasMovableWrapper(target)) ? { MVNW_REPOURL: addressIn(target, 'maven') } : {}),
  }
}

async function hasMovableWrapper({ workspace, directory }: InstallTarget): Promise<boolean> {
  const [script, settings] = await Promise.all(
    ['mvnw', WRAPPER_SETTINGS].map((file) => readSettings(workspace, posix.join(directory, file))),
  )
  return readMavenWrapper(script ?? '', settings ?? '').isMovable
}

const yarnEnvironment = (origin: string, token: string): Record<string, string> => ({
  YARN_NPM_REGISTRY_SERVER: origin,
  YARN_NPM_AUTH_TOKEN: token,
  YARN_NPM_ALWAYS_AUTH: 'true',
  YARN_UNSAFE_HTTP_WHITELIST: new URL(origin).hostname,
})

/** Matches the addresses of the public registry, which a project may name and which the relay stands for. */
const PUBLIC = /^["']?https?:\/\/registry\.(?:npmjs\.org|yarnpkg\.com)\/?["']?$/

/** What the project or the user has configured, in the directory or above it. */
interface CustomRegistries {
  /** Whether Bun and Yarn have another registry than the public one. */
  readonly bun: boolean
  readonly yarn: boolean
  /** Whether a file names the public registry, and none another one: it would take precedence over npm's global settings. */
  readonly publicByFile: boolean
  readonly userSettings: boolean
}

async function customRegistries({ workspace, directory }: InstallTarget): Promise<CustomRegistries> {
  const read = (path: string): Promise<string> => readSettings(workspace, path)
  let bun = false
  let yarn = false
  const ofNpm: string[] = []
  for (const one of withParents(directory)) {
    const settings = await read(posix.join(one, '.npmrc'))
    ofNpm.push(...[...settings.matchAll(/^[ \t]*registry\s*=\s*(\S+)/gm)].map(([, address = '']) => address))
    // Only the user's settings of Bun, in the home directory, may begin with a dot.
    for (const name of one === '' ? ['bunfig.toml', '.bunfig.toml'] : ['bunfig.toml']) {
      bun ||= namesRegistry(await read(posix.join(one, name)))
    }
    const ofYarn = /^npmRegistryServer\s*:\s*(\S+)/m.exec(await read(posix.join(one, '.yarnrc.yml')))?.[1]
    yarn ||= ofYarn !== undefined && !PUBLIC.test(ofYarn)
  }
  const isPublic = ofNpm.every((address) => PUBLIC.test(address))
  return {
    bun: bun || !isPublic,
    yarn,
    publicByFile: ofNpm.length > 0 && isPublic,
    userSettings: (await read('.npmrc')) !== '',
  }
}

/** Reads a file with settings; one that is missing is empty. */
async function readSettings(workspace: InstallTarget['workspace'], path: string): Promise<string> {
  try {
    return new TextDecoder().decode(await workspace.read(path, MAX_SETTINGS_BYTES))
  } catch {
    return ''
  }
}

function namesRegistry(bunfig: string): boolean {
  try {
    const { registry } = fieldsOf(parseToml(bunfig).install)
    return registry !== undefined && !(typeof registry === 'string' && PUBLIC.test(registry))
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
