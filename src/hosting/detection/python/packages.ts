import { posix } from 'node:path'
import { fieldsOf } from '../../../runtime/is-object.ts'
import { shellQuote } from '../../../runtime/shell-quote.ts'
import type { Evidence } from '../../app-runtime/plan.ts'
import type { Strength } from '../candidate.ts'
import type { Machine } from '../machine.ts'
import type { SourceDirectory } from '../source.ts'
import {
  anyVersion,
  bySpecifiers,
  chooseTools,
  needsOf,
  pinned,
  readPin,
  type ToolNeed,
} from '../versions.ts'

/** The packages that a Python app requires, and the Python that it wants. */
export interface PythonPackages {
  /** Reports whether a package is required, as far as the lists can be read. */
  has(name: string): boolean
  /** Returns what installs everything, and `also`, into an environment that is there; null if nothing is listed. */
  install(also: readonly string[]): string | null
  readonly tools: readonly ToolNeed[]
  readonly evidence: readonly Evidence[]
  /** Whether the project itself is installed, so that its own commands are in `.venv/bin`. */
  readonly installsItself: boolean
  /** The commands that the project installs, by name. */
  readonly scripts: Readonly<Record<string, string>>
}

/** How an app starts, with `{python}` in place of the interpreter. */
export interface PythonStart {
  readonly name: string | null
  readonly strength: Strength
  readonly command: string
  readonly build?: string | null
  /** Packages that the start needs besides the listed ones. */
  readonly also?: readonly string[]
  /** Variables that it needs and the app may set itself. */
  readonly variables?: Readonly<Record<string, string>>
  readonly evidence: readonly Evidence[]
}

/** Lists for pip, in the order in which they are taken. */
const REQUIREMENTS = [
  'requirements.txt',
  ...['production', 'prod', 'main', 'base', 'common', 'app'].map((name) => `requirements/${name}.txt`),
  ...['requirements-prod.txt', 'requirements_prod.txt', 'requirements-production.txt', 'requirements.in'],
]

/** Matches the names of files that list packages. */
export const PACKAGE_LISTS =
  /^(?:requirements.*\.(?:txt|in)|pyproject\.toml|Pipfile|setup\.(?:py|cfg)|uv\.lock|poetry\.lock|pdm\.lock)$/

/** Deepest `-r` that is followed for names. @bound peer */
const MAX_INCLUDES = 10

/**
 * Reads the lists and locks of a directory; null for none. What installs a list is its own tool, whatever berth can read
 * of it.
 *
 * @throws AppError for a broken file
 */
export async function readPythonPackages(directory: SourceDirectory): Promise<PythonPackages | null> {
  const list = directory.first(REQUIREMENTS)
  const project = await directory.toml('pyproject.toml')
  const pipfile = await directory.toml('Pipfile')
  const setup = directory.first(['setup.py', 'setup.cfg'])
  const isProject =
    project !== null &&
    ('project' in project || 'poetry' in fieldsOf(project.tool) || 'dependency-groups' in project)
  if (list === null && !isProject && pipfile === null && setup === null) return null
  const poetry = fieldsOf(fieldsOf(project?.tool).poetry)
  const names = new Set([
    ...(list === null ? [] : await namesIn(directory, list)),
    ...Object.keys({ ...fieldsOf(poetry.dependencies), ...fieldsOf(pipfile?.packages) }).map(normalize),
    ...stringsIn([
      fieldsOf(project?.project).dependencies,
      project?.['dependency-groups'],
      fieldsOf(project?.project)['optional-dependencies'],
    ]).map(normalize),
    ...(await lockedNames(directory)),
  ])
  const { file, tools = [], ...way } = chooseWay(directory, { list, project, pipfile, setup })
  return {
    ...way,
    has: (name) => names.has(name),
    scripts: scriptsOf(project),
    tools: await needsOfPython(directory, project, pipfile, tools),
    evidence: [await directory.evidence(file)],
  }
}

/**
 * Returns the command that installs an app's packages, and `also`, into `.venv`, and the tools for it; no command if there
 * is nothing to install.
 */
export async function installPython(
  directory: SourceDirectory,
  packages: PythonPackages | null,
  also: readonly string[],
  machine: Machine,
): Promise<{ install: string | null; tools: readonly ToolNeed[] }> {
  const tools = packages?.tools ?? (await needsOfPython(directory))
  const { programs, tools: found } = await chooseTools(tools, machine)
  const program = programs.get('python') ?? 'python3'
  const version = found.find(({ name }) => name === 'python')?.found ?? '3'
  const command = packages === null ? pipOrNull(also) : packages.install(also)
  return { tools, install: command === null ? null : `${venv(program, version)} && ${command}` }
}

/** How the packages of one kind of list are installed. */
interface Way extends Pick<PythonPackages, 'install' | 'installsItself'> {
  /** The list or lock that decides. */
  readonly file: string
  readonly tools?: readonly ToolNeed[]
}

interface Lists {
  list: string | null
  project: Record<string, unknown> | null
  pipfile: Record<string, unknown> | null
  setup: string | null
}

/** Chooses what installs: the tool of a lock, else that of a list. */
function chooseWay(directory: SourceDirectory, { list, project, pipfile, setup }: Lists): Way {
  const isBuilt = project !== null && 'build-system' in project
  const poetry = fieldsOf(fieldsOf(project?.tool).poetry)
  if (directory.has('uv.lock')) {
    // `uv sync` would take the files from the addresses in the lock; what it exports has the same versions and hashes.
    const exported = '.venv/requirements.txt'
    const sync = `uv export --frozen --quiet --no-header -o ${exported} && ${UV} pip sync --python .venv ${exported}`
    return {
      ...{ file: 'uv.lock', installsItself: isBuilt },
      install: (also) => (also.length === 0 ? sync : `${sync} && ${uvPip(also)}`),
    }
  }
  if (directory.has('poetry.lock')) {
    const isPackage = isBuilt && poetry['package-mode'] !== false
    const installsItself = isPackage && Object.keys(scriptsOf(project)).length > 0
    const sync = `POETRY_VIRTUALENVS_IN_PROJECT=1 poetry install --no-interaction${installsItself ? '' : ' --no-root'}`
    return { file: 'poetry.lock', installsItself, install: (also) => `${sync}${andPip(also)}` }
  }
  if (directory.has('Pipfile.lock') || (pipfile !== null && list === null)) {
    const [file, command] = directory.has('Pipfile.lock')
      ? ['Pipfile.lock', 'pipenv sync']
      : ['Pipfile', 'pipenv install --skip-lock']
    const sync = `PIPENV_VENV_IN_PROJECT=1 PIPENV_IGNORE_VIRTUALENVS=1 ${command}`
    return { file, installsItself: false, install: (also) => `${sync}${andPip(also)}` }
  }
  if (directory.has('pdm.lock') && list === null)
    return {
      ...{ file: 'pdm.lock', installsItself: isBuilt, tools: [anyVersion('pdm', 'pdm.lock')] },
      install: (also) => `pdm sync --prod${andPip(also)}`,
    }
  if (list !== null)
    return { file: list, installsItself: false, install: (also) => pip(['-r', list, ...also]) }
  if (project !== null && 'dependencies' in poetry) {
    const specs = poetrySpecs(fieldsOf(poetry.dependencies))
    return {
      ...{ file: 'pyproject.toml', installsItself: false },
      install: (also) => pipOrNull([...specs, ...also]),
    }
  }
  if (project !== null && !isBuilt) {
    const { dependencies, dynamic } = fieldsOf(project.project)
    const groups = stringsIn(fieldsOf(fieldsOf(project.tool).uv)['default-groups'])
    const isPlain = groups.length === 0 && !stringsIn(dynamic).includes('dependencies')
    // pip reads no groups. Neither does it install what a file without a build system lists.
    const words = [
      ...('project' in project ? ['-r', 'pyproject.toml'] : []),
      ...groups.flatMap((name) => ['--group', name]),
    ]
    return {
      ...{ file: 'pyproject.toml', installsItself: false },
      install: (also) =>
        isPlain ? pipOrNull([...stringsIn(dependencies), ...also]) : uvPip([...words, ...also]),
    }
  }
  return {
    ...{ file: project === null ? (setup ?? 'setup.py') : 'pyproject.toml', installsItself: true },
    install: (also) => pip(['-e', '.', ...also]),
  }
}

/** Keeps an environment of the same Python that works; else makes it anew, by uv where Python has no `ensurepip`. */
const venv = (program: string, version: string): string => {
  const minor = version.split('.').slice(0, 2).join('.')
  return `{ .venv/bin/python --version 2>/dev/null | grep -qF ' ${minor}.' || ${program} -m venv --clear .venv || uv venv --clear --seed --python ${program} .venv; }`
}

/** uv with the index of pip: it has no setting of the index that would not get into its lock. */
const UV = `UV_DEFAULT_INDEX="\${UV_DEFAULT_INDEX-$PIP_INDEX_URL}" uv`

const uvPip = (words: readonly string[]): string => `${UV} pip install --python .venv ${shellQuote(words)}`

const pip = (words: readonly string[]): string =>
  `.venv/bin/python -m pip install --no-input ${shellQuote(words)}`

const pipOrNull = (words: readonly string[]): string | null => (words.length === 0 ? null : pip(words))

const andPip = (also: readonly string[]): string => (also.length === 0 ? '' : ` && ${pip(also)}`)

/** Returns the versions of Python and of tools that the files of a directory ask for. */
async function needsOfPython(
  directory: SourceDirectory,
  project: Record<string, unknown> | null = null,
  pipfile: Record<string, unknown> | null = null,
  more: readonly ToolNeed[] = [],
): Promise<ToolNeed[]> {
  const poetry = fieldsOf(fieldsOf(fieldsOf(project?.tool).poetry).dependencies).python
  const requires = fieldsOf(project?.project)['requires-python'] ?? poetry
  const { python_version: short, python_full_version: full = short } = fieldsOf(pipfile?.requires)
  const stated = [
    typeof requires === 'string'
      ? bySpecifiers('python', requires, directory.pathOf('pyproject.toml'))
      : null,
    typeof full === 'string' ? pinned('python', full, directory.pathOf('Pipfile')) : null,
    await readPin(directory, 'python'),
  ]
  const isStated = stated.some((need) => need !== null)
  return [...needsOf('python', isStated ? stated : [await pinOfImage(directory)]), ...more]
}

/** Returns the version of the image that a Dockerfile begins with: what its author runs, where nothing else says it. */
async function pinOfImage(directory: SourceDirectory): Promise<ToolNeed | null> {
  const file = directory.first(['Dockerfile', 'docker/Dockerfile', 'Containerfile'])
  const text = file === null ? '' : await directory.textOf(file)
  const version = /^FROM\s+(?:\S+\/)?python:(\d+(?:\.\d+){1,2})/im.exec(text)?.[1]
  return file === null || version === undefined ? null : pinned('python', version, directory.pathOf(file))
}

/** Returns the names of packages in a list for pip and in those that it includes. */
async function namesIn(directory: SourceDirectory, path: string, depth = 0): Promise<string[]> {
  const names: string[] = []
  for (const line of (await directory.textOf(path)).split(/\r?\n/)) {
    const included = /^\s*(?:-r|--requirement)[\s=]+(\S+)/.exec(line)?.[1]
    if (included === undefined) names.push(normalize(line))
    else if (depth < MAX_INCLUDES)
      names.push(...(await namesIn(directory, posix.join(posix.dirname(path), included), depth + 1)))
  }
  return names.filter(Boolean)
}

async function lockedNames(directory: SourceDirectory): Promise<string[]> {
  const file = directory.first(['uv.lock', 'poetry.lock', 'pdm.lock'])
  const text = file === null ? '' : await directory.code(file)
  return [...text.matchAll(/^name = "([^"]+)"/gm)].map(([, name = '']) => normalize(name))
}

/** Returns the name of the package in a line, in its normal form (PEP 503), with its extras apart; empty for none. */
function normalize(line: string): string {
  const name = /^\s*([A-Za-z0-9][\w.-]*)/.exec(line)?.[1] ?? ''
  return name.toLowerCase().replace(/[-_.]+/g, '-')
}

/** Returns all strings in lists and tables of lists. */
function stringsIn(value: unknown): string[] {
  if (typeof value === 'string') return [value]
  if (typeof value !== 'object' || value === null) return []
  return Object.values(value).flatMap(stringsIn)
}

function scriptsOf(project: Record<string, unknown> | null): Record<string, string> {
  const all = {
    ...fieldsOf(fieldsOf(fieldsOf(project?.tool).poetry).scripts),
    ...fieldsOf(fieldsOf(project?.project).scripts),
  }
  return Object.fromEntries(
    Object.entries(all).filter((entry): entry is [string, string] => typeof entry[1] === 'string'),
  )
}

/** Returns requirements of pip (PEP 508) for Poetry's table of dependencies. */
const poetrySpecs = (versions: Record<string, unknown>): string[] =>
  Object.entries(versions).flatMap(([name, value]) => {
    const [first] = [value].flat()
    const { version, extras, markers, git, rev, tag, branch, url, path, optional } =
      typeof first === 'string' ? ({ version: first } as Record<string, unknown>) : fieldsOf(first)
    if (name === 'python' || optional === true) return []
    if (typeof path === 'string') return ['-e', path]
    const chosen = Array.isArray(extras) && extras.length > 0 ? `${name}[${extras.join(',')}]` : name
    const marker = typeof markers === 'string' ? ` ; ${markers}` : ''
    const at = [rev, tag, branch].find((one) => typeof one === 'string')
    if (typeof git === 'string') return [`${chosen} @ git+${git}${at === undefined ? '' : `@${at}`}${marker}`]
    if (typeof url === 'string') return [`${chosen} @ ${url}${marker}`]
    return [`${chosen}${typeof version === 'string' ? range(version) : ''}${marker}`]
  })

/** Translates Poetry's `^1.2.3`, `~1.2` and `1.2` for pip, also several with commas. */
function range(version: string): string {
  return version
    .split(',')
    .map((one) => {
      const trimmed = one.trim()
      const [, sign, number] = /^([\^~])\s*(\d+(?:\.\d+)*)\S*$/.exec(trimmed) ?? []
      if (sign === undefined || number === undefined) {
        if (trimmed === '*' || trimmed === '') return ''
        return /^\d/.test(trimmed) ? `==${trimmed}` : trimmed
      }
      const parts = number.split('.').map(Number)
      const significant = parts.findIndex((part) => part !== 0)
      const at =
        sign === '~' ? Math.min(1, parts.length - 1) : significant === -1 ? parts.length - 1 : significant
      const next = parts.slice(0, at + 1).map((part, index) => (index === at ? part + 1 : part))
      return `>=${number},<${next.join('.')}`
    })
    .filter(Boolean)
    .join(',')
}
