import { fieldsOf } from '../../../runtime/is-object.ts'
import { shellQuote } from '../../../runtime/shell-quote.ts'
import type { Evidence } from '../../app-runtime/plan.ts'
import type { SourceDirectory } from '../source.ts'
import { anyVersion, bySpecifiers, pinned, readPin, type ToolNeed } from '../versions.ts'

/** The packages that a Python app requires, and the Python that it wants. */
export interface PythonPackages {
  /** Reports whether a package is required, as far as the lists can be read. */
  has(name: string): boolean
  /**
   * Returns the command that installs everything, and `also`, into `.venv`; null if nothing is listed.
   */
  install(python: Interpreter, also: readonly string[]): string | null
  readonly tools: readonly ToolNeed[]
  readonly evidence: readonly Evidence[]
  /** Whether the project itself is installed, so that its own commands are in `.venv/bin`. */
  readonly installsItself: boolean
  /** The commands that the project installs, by name. */
  readonly scripts: Readonly<Record<string, string>>
  readonly warnings: readonly string[]
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

/** Deepest `-r` that is followed for names. */
const MAX_INCLUDES = 10

/** The Python that an environment is made with. */
export interface Interpreter {
  /** The program. */
  readonly program: string
  /** Such as `3.12.4`. */
  readonly version: string
}

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
  const way = chooseWay(directory, { list, project, pipfile, setup })
  return {
    has: (name) => names.has(name),
    install: (python, also) => way.install(python, also),
    installsItself: way.installsItself,
    scripts: scriptsOf(project),
    tools: await pythonNeeds(directory, project, pipfile, way.tools ?? []),
    evidence: [await directory.evidence(way.file)],
    warnings: way.warnings ?? [],
  }
}

/** How the packages of one kind of list are installed. */
interface Way {
  /** The list or lock that decides. */
  readonly file: string
  install(python: Interpreter, also: readonly string[]): string | null
  readonly installsItself: boolean
  readonly tools?: readonly ToolNeed[]
  readonly warnings?: readonly string[]
}

/** What installs the packages of an app without a list, which its start needs. */
export const NO_LIST: Pick<PythonPackages, 'install'> = {
  install: (python, also) => (also.length === 0 ? null : `${venv(python)} && ${pip(also)}`),
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
  if (directory.has('uv.lock')) {
    // `uv sync` would take the files from the addresses in the lock; what it exports has the same versions and hashes.
    const exported = '.venv/requirements.txt'
    return {
      file: 'uv.lock',
      installsItself: isBuilt,
      install: (python, also) =>
        `${venv(python)} && uv export --frozen --quiet --no-header -o ${exported} && ${UV} pip sync --python .venv ${exported}${also.length === 0 ? '' : ` && ${UV} pip install --python .venv ${shellQuote(also)}`}`,
    }
  }
  if (directory.has('poetry.lock')) {
    const isPackage = isBuilt && fieldsOf(fieldsOf(project?.tool).poetry)['package-mode'] !== false
    return {
      file: 'poetry.lock',
      installsItself: isPackage && Object.keys(scriptsOf(project)).length > 0,
      install(python, also) {
        const root = this.installsItself ? '' : ' --no-root'
        return `${venv(python)} && POETRY_VIRTUALENVS_IN_PROJECT=1 poetry install --no-interaction${root}${andPip(also)}`
      },
    }
  }
  if (directory.has('Pipfile.lock') || (pipfile !== null && list === null)) {
    const isLocked = directory.has('Pipfile.lock')
    const command = isLocked ? 'pipenv sync' : 'pipenv install --skip-lock'
    return {
      file: isLocked ? 'Pipfile.lock' : 'Pipfile',
      installsItself: false,
      install: (python, also) =>
        `${venv(python)} && PIPENV_VENV_IN_PROJECT=1 PIPENV_IGNORE_VIRTUALENVS=1 ${command}${andPip(also)}`,
    }
  }
  if (directory.has('pdm.lock') && list === null) {
    return {
      file: 'pdm.lock',
      installsItself: isBuilt,
      tools: [{ ...anyVersion('pdm'), wantedBy: 'pdm.lock' }],
      install: (python, also) => `${venv(python)} && pdm sync --prod${andPip(also)}`,
    }
  }
  if (list !== null) {
    return {
      file: list,
      installsItself: false,
      install: (python, also) => `${venv(python)} && ${pip(['-r', list, ...also])}`,
    }
  }
  const poetry = fieldsOf(fieldsOf(project?.tool).poetry)
  if (project !== null && 'dependencies' in poetry) {
    const { specs, warnings } = poetrySpecs(fieldsOf(poetry.dependencies))
    return {
      ...{ file: 'pyproject.toml', installsItself: false, warnings },
      install: (python, also) =>
        specs.length + also.length === 0 ? null : `${venv(python)} && ${pip([...specs, ...also])}`,
    }
  }
  if (project !== null && !isBuilt) {
    const { dependencies, dynamic } = fieldsOf(project.project)
    const groups = stringsIn(fieldsOf(fieldsOf(project.tool).uv)['default-groups'])
    const specs = stringsIn(dependencies)
    const isPlain = groups.length === 0 && !stringsIn(dynamic).includes('dependencies')
    // pip reads no groups. Neither does it install what a file without a build system lists.
    const words = [
      ...('project' in project ? ['-r', 'pyproject.toml'] : []),
      ...groups.flatMap((name) => ['--group', name]),
    ]
    return {
      ...{ file: 'pyproject.toml', installsItself: false },
      install: (python, also) =>
        isPlain
          ? NO_LIST.install(python, [...specs, ...also])
          : `${venv(python)} && ${UV} pip install --python .venv ${shellQuote([...words, ...also])}`,
    }
  }
  return {
    ...{ file: project === null ? (setup ?? 'setup.py') : 'pyproject.toml', installsItself: true },
    install: (python, also) => `${venv(python)} && ${pip(['-e', '.', ...also])}`,
  }
}

/** Keeps an environment of the same Python that works; else makes it anew, by uv where Python has no `ensurepip`. */
const venv = ({ program, version }: Interpreter): string => {
  const minor = version.split('.').slice(0, 2).join('.')
  return `{ .venv/bin/python --version 2>/dev/null | grep -qF ' ${minor}.' || ${program} -m venv --clear .venv || uv venv --clear --seed --python ${program} .venv; }`
}

/** uv with the index of pip: it has no setting of the index that would not get into its lock. */
const UV = `UV_DEFAULT_INDEX="\${UV_DEFAULT_INDEX-$PIP_INDEX_URL}" uv`

const pip = (words: readonly string[]): string =>
  `.venv/bin/python -m pip install --no-input ${shellQuote(words)}`

const andPip = (also: readonly string[]): string => (also.length === 0 ? '' : ` && ${pip(also)}`)

/** Returns the versions of Python and of tools that the files of a directory ask for. */
export async function pythonNeeds(
  directory: SourceDirectory,
  project: Record<string, unknown> | null = null,
  pipfile: Record<string, unknown> | null = null,
  more: readonly ToolNeed[] = [],
): Promise<ToolNeed[]> {
  const pin = await readPin(directory, 'python', {
    files: ['.python-version', 'runtime.txt'],
    names: ['python'],
  })
  const at = (file: string): string => [directory.path, file].filter(Boolean).join('/')
  const poetry = fieldsOf(fieldsOf(fieldsOf(project?.tool).poetry).dependencies).python
  const requires = fieldsOf(project?.project)['requires-python'] ?? poetry
  const { python_version: short, python_full_version: full } = fieldsOf(pipfile?.requires)
  const wishes = [
    ...(typeof requires === 'string' ? [bySpecifiers('python', requires, at('pyproject.toml'))] : []),
    ...(typeof (full ?? short) === 'string' ? [pinned('python', String(full ?? short), at('Pipfile'))] : []),
    ...(pin === null ? [] : [pin]),
  ]
  if (wishes.length > 0) return [...wishes, ...more]
  return [(await pinOfImage(directory)) ?? anyVersion('python'), ...more]
}

const DOCKERFILES = ['Dockerfile', 'docker/Dockerfile', 'Containerfile']

/** Returns the version of the image that a Dockerfile begins with: what its author runs, where nothing else says it. */
async function pinOfImage(directory: SourceDirectory): Promise<ToolNeed | null> {
  const file = directory.first(DOCKERFILES)
  const text = file === null ? null : await directory.text(file)
  const version = /^FROM\s+(?:\S+\/)?python:(\d+(?:\.\d+){1,2})/im.exec(text ?? '')?.[1]
  return version === undefined
    ? null
    : pinned('python', version, [directory.path, file].filter(Boolean).join('/'))
}

/** Returns the names of packages in a list for pip and in those that it includes. */
async function namesIn(directory: SourceDirectory, path: string, depth = 0): Promise<string[]> {
  const names: string[] = []
  for (const line of ((await directory.text(path)) ?? '').split(/\r?\n/)) {
    const included = /^\s*(?:-r|--requirement)[\s=]+(\S+)/.exec(line)?.[1]
    if (included === undefined) names.push(normalize(line))
    else if (depth < MAX_INCLUDES) {
      const base = path.includes('/') ? path.slice(0, path.lastIndexOf('/') + 1) : ''
      names.push(...(await namesIn(directory, `${base}${included}`, depth + 1)))
    }
  }
  return names.filter(Boolean)
}

async function lockedNames(directory: SourceDirectory): Promise<string[]> {
  const file = directory.first(['uv.lock', 'poetry.lock', 'pdm.lock'])
  const text = file === null ? '' : ((await directory.code(file)) ?? '')
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
function poetrySpecs(versions: Record<string, unknown>): { specs: string[]; warnings: string[] } {
  const warnings: string[] = []
  const specs = Object.entries(versions).flatMap(([name, value]) => {
    if (name === 'python') return []
    const fields =
      typeof value === 'string' ? { version: value } : fieldsOf(Array.isArray(value) ? value[0] : value)
    const { version, extras, markers, git, rev, tag, branch, url, path, optional } = fields as Record<
      string,
      unknown
    >
    if (optional === true) return []
    const chosen = Array.isArray(extras) && extras.length > 0 ? `[${extras.join(',')}]` : ''
    const marker = typeof markers === 'string' ? ` ; ${markers}` : ''
    if (typeof path === 'string') return ['-e', path]
    if (typeof git === 'string') {
      const at = [rev, tag, branch].find((one) => typeof one === 'string')
      return [`${name}${chosen} @ git+${git}${at === undefined ? '' : `@${at}`}${marker}`]
    }
    if (typeof url === 'string') return [`${name}${chosen} @ ${url}${marker}`]
    return [`${name}${chosen}${typeof version === 'string' ? range(version) : ''}${marker}`]
  })
  return { specs, warnings }
}

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
