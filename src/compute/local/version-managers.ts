import { basename, dirname, join } from 'node:path'
import { entriesOf, isDirectory, realPathOrNull, textOrEmpty } from '../../runtime/if-present.ts'
import { parseToml } from '../../runtime/toml.ts'
import { byVersion, pickVersion } from './versions.ts'

/** Where a person's version managers are looked for. */
interface ManagerPlaces {
  /** Absolute path of the home directory; null if there is none. */
  readonly home: string | null
  /** The variables that berth was started with. */
  readonly variables: Readonly<Record<string, string | undefined>>
  /** The directories of PATH. */
  readonly path: readonly string[]
}

/** One version manager on this machine. */
export interface FoundManager {
  readonly name: string
  /** Absolute path of its directory. */
  readonly root: string
  /** Absolute paths of the versions it has installed, with links. */
  readonly versions: readonly string[]
  /** Absolute paths of those that its user has chosen for everywhere, the first one first. */
  readonly chosen: readonly string[]
  /** The user's choice in words, for a message; null if there is none. */
  readonly choice: string | null
  /** Absolute paths of directories for PATH whose programs start the chosen versions. */
  readonly shims: readonly string[]
  /** Absolute paths of directories for PATH whose programs work only for the user's own home. */
  readonly own: readonly string[]
}

/** A version manager, known by its files. Nothing of it is executed, since it may download, or change its directory. */
interface Manager {
  readonly name: string
  /** The variable that names its directory. */
  readonly variable?: string
  /** Its directory otherwise, below the home directory or those of XDG. The first that exists counts. */
  readonly at: readonly string[]
  /** The versions, relative to its directory; `*` is any name. */
  readonly versions: readonly string[]
  /** Directories for PATH, relative to its directory. */
  readonly shims?: readonly string[]
  readonly own?: readonly string[]
  /** Reads the names, or the absolute paths, of the versions that the user has chosen. */
  choose?(root: string, places: ManagerPlaces): string[]
}

/**
 * Returns the choice of managers that are made like rbenv: a variable, or the file `version` with names separated by white
 * space.
 */
const chooseByFile =
  (variable: string) =>
  (root: string, { variables }: ManagerPlaces): string[] => {
    const wish = variables[variable] ?? textOrEmpty(join(root, 'version')).replace(/#.*/g, '')
    return wish.split(/[\s:]+/).filter((name) => name !== '' && name !== 'system')
  }

/** A manager that is made like rbenv. */
const likeRbenv = (name: string): Manager => ({
  name,
  variable: `${name.toUpperCase()}_ROOT`,
  at: [`.${name}`],
  versions: ['versions/*'],
  shims: ['shims'],
  own: ['bin', 'libexec'],
  choose: chooseByFile(`${name.toUpperCase()}_VERSION`),
})

/** All managers, a line each where they need no more. */
const MANAGERS: readonly Manager[] = [
  ...['pyenv', 'rbenv', 'nodenv', 'goenv', 'jenv', 'phpenv', 'plenv'].map(likeRbenv),
  {
    name: 'rustup',
    variable: 'RUSTUP_HOME',
    at: ['.rustup'],
    versions: ['toolchains/*'],
    choose: (root, { variables }) => {
      const name = variables.RUSTUP_TOOLCHAIN ?? tomlOf(join(root, 'settings.toml')).default_toolchain
      return typeof name === 'string' ? [name] : []
    },
  },
  {
    name: 'nvm',
    variable: 'NVM_DIR',
    at: ['.nvm', '$CONFIG/nvm'],
    versions: ['versions/node/*'],
    choose: (root) => nvmAlias(root, 'default'),
  },
  {
    name: 'fnm',
    variable: 'FNM_DIR',
    at: ['$DATA/fnm', '.fnm'],
    versions: ['node-versions/*/installation'],
    choose: (root) => linkTo(join(root, 'aliases/default')),
  },
  {
    name: 'volta',
    variable: 'VOLTA_HOME',
    at: ['.volta'],
    versions: ['tools/image/*/*'],
    shims: ['bin'],
    choose: (root) => voltaDefaults(join(root, 'tools')),
  },
  {
    name: 'asdf',
    variable: 'ASDF_DATA_DIR',
    at: ['.asdf'],
    versions: ['installs/*/*', 'installs/*/*/go', 'installs/*/*/toolchains/*'],
    shims: ['shims'],
    own: ['bin'],
    choose: (root, places) => toolVersions(places).flatMap(inDirectoryOf(root, 'installs')),
  },
  {
    name: 'mise',
    variable: 'MISE_DATA_DIR',
    at: ['$DATA/mise', '$DATA/rtx'],
    versions: ['installs/*/*'],
    shims: ['shims'],
    choose: (root, places) => {
      const { tools } = tomlOf(placeOf('$CONFIG/mise/config.toml', places) ?? '')
      const wishes = [...wishesOf(tools), ...toolVersions(places)]
      return wishes.flatMap(inDirectoryOf(root, 'installs'))
    },
  },
  {
    name: 'proto',
    variable: 'PROTO_HOME',
    at: ['.proto'],
    versions: ['tools/*/*'],
    shims: ['shims'],
    own: ['bin'],
    choose: (root) => wishesOf(tomlOf(join(root, '.prototools'))).flatMap(inDirectoryOf(root, 'tools')),
  },
  {
    name: 'SDKMAN',
    variable: 'SDKMAN_DIR',
    at: ['.sdkman'],
    versions: ['candidates/*/*'],
    own: ['bin'],
    choose: (root) => expand(root, 'candidates/*').flatMap((directory) => linkTo(join(directory, 'current'))),
  },
  { name: 'uv', variable: 'UV_PYTHON_INSTALL_DIR', at: ['$DATA/uv/python'], versions: ['*'] },
  { name: 'rye', variable: 'RYE_HOME', at: ['.rye'], versions: ['py/*', 'py/*/install'], shims: ['shims'] },
  { name: 'hatch', at: ['$DATA/hatch/pythons'], versions: ['*', '*/python'] },
  { name: 'pdm', at: ['$DATA/pdm/python'], versions: ['*'] },
  { name: 'n', variable: 'N_PREFIX', at: ['n', '.n'], versions: ['n/versions/node/*'] },
  { name: 'nodebrew', at: ['.nodebrew'], versions: ['node/*'] },
  { name: 'gvm', variable: 'GVM_ROOT', at: ['.gvm'], versions: ['gos/*'] },
  { name: 'golang.org/dl', at: ['sdk'], versions: ['go*'] },
  { name: "Go's module cache", at: ['go/pkg/mod/golang.org'], versions: ['toolchain@*'] },
  { name: 'jabba', variable: 'JABBA_HOME', at: ['.jabba'], versions: ['jdk/*'] },
  { name: 'IntelliJ', at: ['.jdks'], versions: ['*'] },
  {
    name: 'Gradle',
    variable: 'GRADLE_USER_HOME',
    at: ['.gradle'],
    versions: ['jdks/*', 'jdks/*/*', 'wrapper/dists/*/*/*'],
  },
  { name: "Maven's wrapper", at: ['.m2/wrapper/dists'], versions: ['*/*', '*/*/*'] },
]

/** Finds the version managers of this machine with what they have installed, by reading their files. */
export function findManagers(places: ManagerPlaces): FoundManager[] {
  return MANAGERS.flatMap((manager) =>
    rootsOf(manager, places).map((root) => {
      const versions = manager.versions.flatMap((pattern) => expand(root, pattern))
      const names = manager.choose?.(root, places) ?? []
      const within = (paths: readonly string[] = []): string[] => paths.map((path) => join(root, path))
      return {
        name: manager.name,
        root,
        versions,
        chosen: [...new Set(names.flatMap((name) => versionsNamed(name, versions)))],
        choice: names.length === 0 ? null : names.map((name) => basename(name)).join(', '),
        shims: within(manager.shims),
        own: within(manager.own),
      }
    }),
  )
}

/**
 * Returns the directories of a manager: the one of its variable or its usual one, and any that PATH names, since a
 * service has the PATH of a person but not all of the variables.
 */
function rootsOf({ name, variable, at, shims = [] }: Manager, places: ManagerPlaces): string[] {
  const named = variable === undefined ? undefined : places.variables[variable]
  const usual = at.flatMap((place) => placeOf(place, places) ?? []).filter(isDirectory)
  const inPath = places.path
    .filter((directory) => shims.includes(basename(directory)))
    .map((directory) => dirname(directory))
    .filter((directory) => basename(directory).replace(/^\./, '') === name)
  const roots = [...(named?.startsWith('/') ? [named] : usual.slice(0, 1)), ...inPath]
  return [...new Set(roots.flatMap((root) => (isDirectory(root) ? (realPathOrNull(root) ?? []) : [])))]
}

/** Returns the absolute path of a place below the home directory; null without one. */
function placeOf(place: string, { home, variables }: ManagerPlaces): string | null {
  const [first = '', ...rest] = place.split('/')
  const xdg = { $DATA: ['XDG_DATA_HOME', '.local/share'], $CONFIG: ['XDG_CONFIG_HOME', '.config'] }[first]
  if (xdg === undefined) return home === null ? null : join(home, place)
  const [variable = '', usual = ''] = xdg
  const base = variables[variable] ?? (home === null ? null : join(home, usual))
  return base?.startsWith('/') ? join(base, ...rest) : null
}

/** Returns the directories that a pattern names, each `*` of which is any name. */
function expand(root: string, pattern: string): string[] {
  let found = [root]
  for (const part of pattern.split('/')) {
    const name = part.includes('*') ? new RegExp(`^${part.replaceAll('*', '[^.].*')}$`) : null
    found = found.flatMap((directory) =>
      name === null
        ? [join(directory, part)]
        : entriesOf(directory)
            .filter((entry) => name.test(entry.name))
            .map((entry) => join(directory, entry.name)),
    )
  }
  return found.filter(isDirectory)
}

/**
 * Returns the directories of the version that a name means: of the same name, or of the newest that begins with it. A path
 * means one of the versions beside it.
 */
function versionsNamed(name: string, versions: readonly string[]): string[] {
  const siblings = name.startsWith('/')
    ? versions.filter((version) => version.startsWith(`${dirname(name)}/`))
    : versions
  const picked = siblings.includes(name) ? nameOf(name) : pickVersion(siblings.map(nameOf), basename(name))
  const found = siblings.filter((version) => nameOf(version) === picked)
  return siblings.filter((version) => found.some((one) => version === one || version.startsWith(`${one}/`)))
}

/** Returns the name that a version has for its user. */
const nameOf = (version: string): string =>
  basename(/\/(?:installation|install|go|python)$/.test(version) ? dirname(version) : version)

/** Returns the target of a link, as a list of one; empty if there is none. */
function linkTo(path: string): string[] {
  const real = realPathOrNull(path)
  return real === null ? [] : [real]
}

/** Most aliases that lead to one version of nvm. @bound owner */
const MAX_ALIASES = 8

/** Returns the name of the version behind an alias of nvm, such as `lts/*`. */
function nvmAlias(root: string, alias: string): string[] {
  let name = alias
  for (let step = 0; step < MAX_ALIASES; step += 1) {
    const target = textOrEmpty(join(root, 'alias', name.replaceAll('..', ''))).trim()
    if (target === '') break
    name = target
  }
  if (name === alias || name === 'system') return []
  if (name === 'node' || name === 'stable') {
    const [newest] = expand(root, 'versions/node/*').map(nameOf).sort(byVersion).reverse()
    return newest === undefined ? [] : [newest]
  }
  return [/^\d/.test(name) ? `v${name}` : name]
}

/** Returns the versions that Volta starts where a project names none. @param tools its directory of them */
function voltaDefaults(tools: string): string[] {
  let platform: { node?: { runtime?: unknown }; pnpm?: unknown; yarn?: unknown }
  try {
    platform = JSON.parse(textOrEmpty(join(tools, 'user/platform.json'))) ?? {}
  } catch {
    return []
  }
  const versions = { node: platform.node?.runtime, pnpm: platform.pnpm, yarn: platform.yarn }
  return Object.entries(versions).flatMap(([tool, version]) =>
    typeof version === 'string' ? [join(tools, 'image', tool, version)] : [],
  )
}

/** A tool's name with a wished version. */
type Wish = readonly [tool: string, version: string]

/** Reads the versions of the home directory's .tool-versions, which count everywhere. */
function toolVersions({ home }: ManagerPlaces): Wish[] {
  if (home === null) return []
  return textOrEmpty(join(home, '.tool-versions'))
    .split('\n')
    .flatMap((line) => {
      const [tool = '', ...versions] = line.replace(/#.*/, '').trim().split(/\s+/)
      return versions.map((version): Wish => [tool, version])
    })
}

/** Returns the wishes of a table of TOML: a version, a list of them, or a table with one. */
function wishesOf(tools: unknown): Wish[] {
  if (typeof tools !== 'object' || tools === null) return []
  return Object.entries(tools).flatMap(([tool, value]) =>
    [value].flat().flatMap((one): Wish[] => {
      const version = typeof one === 'object' && one !== null ? (one as { version?: unknown }).version : one
      return typeof version === 'string' || typeof version === 'number' ? [[tool, String(version)]] : []
    }),
  )
}

/** Returns how a wish is named as a path below a manager's directory, where each tool has one. */
const inDirectoryOf =
  (root: string, directory: string) =>
  ([tool, version]: Wish): string[] => {
    const name = tool.replace(/^core:/, '').replaceAll(/[:/]/g, '-')
    if (!/^[\w.-]+$/.test(name) || !/^[\w.+@-]+$/.test(version) || version === 'system') return []
    return [join(root, directory, name, version)]
  }

/** Returns the content of a TOML file; empty if it cannot be read or is not valid. */
function tomlOf(path: string): Record<string, unknown> {
  try {
    return parseToml(textOrEmpty(path))
  } catch {
    return {}
  }
}
