import { fieldsOf } from '../../../runtime/is-object.ts'
import { shellQuote } from '../../../runtime/shell-quote.ts'
import type { Machine } from '../machine.ts'
import type { SourceDirectory } from '../source.ts'

/** The packages that a Python app requires. */
export interface PythonPackages {
  /** Reports whether the app requires a package. */
  has(name: string): boolean
  /**
   * Returns the command that installs the required packages and `also` into `.venv`; null if there is nothing to
   * install.
   */
  install(also: readonly string[]): string | null
}

/** Keeps a working environment; recreates one that is broken or was copied from another machine. */
const VENV = '.venv/bin/python -c "" 2>/dev/null || python3 -m venv --clear .venv'
const UV_VENV = '.venv/bin/python -c "" 2>/dev/null || uv venv --clear .venv'

/**
 * Reads the list of packages in any of its formats; returns null for none.
 *
 * @throws AppError for a broken file
 */
export async function readPythonPackages(
  app: SourceDirectory,
  tools: Machine,
): Promise<PythonPackages | null> {
  const uv = await tools.has('uv')
  const requirements = await app.text('requirements.txt')
  const project = await app.toml('pyproject.toml')
  const pipfile = await app.toml('Pipfile')
  if (requirements === null && project === null && pipfile === null) return null
  const specs = [...projectSpecs(project), ...pipfileSpecs(pipfile)]
  const listed = [...(requirements ?? '').split('\n'), ...specs]
    .map((line) => normalize(line))
    .filter(Boolean)
  const has = (name: string): boolean => listed.includes(name)
  const locked = await lockedInstall(app, tools)
  return {
    has,
    install(also) {
      const extra = pipCommand(uv, also)
      if (requirements === null && locked !== null) return extra === null ? locked : `${locked} && ${extra}`
      const wanted = [...(requirements === null ? specs : ['-r', 'requirements.txt']), ...also]
      if (listed.length === 0 && also.length === 0) return null
      const install = pipCommand(uv, wanted)
      return install === null ? null : `{ ${uv ? UV_VENV : VENV}; } && ${install}`
    },
  }
}

/** Returns the command that installs requirements into `.venv`, by uv or by pip; null without any. */
function pipCommand(uv: boolean, wanted: readonly string[]): string | null {
  if (wanted.length === 0) return null
  const words = shellQuote(wanted)
  return uv
    ? `uv pip install --python .venv/bin/python ${words}`
    : `.venv/bin/python -m pip install --disable-pip-version-check --no-input ${words}`
}

/** Returns the command of the tool whose lock file exists, if that tool is installed. */
async function lockedInstall(app: SourceDirectory, tools: Machine): Promise<string | null> {
  if ((await app.has('uv.lock')) && (await tools.has('uv'))) return 'uv sync --frozen || uv sync'
  if ((await app.has('poetry.lock')) && (await tools.has('poetry'))) {
    return 'POETRY_VIRTUALENVS_IN_PROJECT=1 poetry install --no-root --no-interaction'
  }
  if ((await app.has('Pipfile.lock')) && (await tools.has('pipenv'))) {
    return 'PIPENV_VENV_IN_PROJECT=1 pipenv sync'
  }
  return null
}

/** Returns the name of the package in a line, in its normal form (PEP 503); empty for none. */
function normalize(line: string): string {
  const name = /^\s*([A-Za-z0-9][\w.-]*)/.exec(line)?.[1] ?? ''
  return name.toLowerCase().replace(/[-_.]+/g, '-')
}

function projectSpecs(file: Record<string, unknown> | null): string[] {
  const listed = fieldsOf(file?.project).dependencies
  const standard = Array.isArray(listed) ? listed.filter((one) => typeof one === 'string') : []
  const poetry = fieldsOf(fieldsOf(fieldsOf(file?.tool).poetry).dependencies)
  return [...standard, ...specsOf(poetry)]
}

const pipfileSpecs = (file: Record<string, unknown> | null): string[] => specsOf(fieldsOf(file?.packages))

/** Returns requirements of pip (PEP 508) for a table of names and versions in the form of Poetry and Pipenv. */
function specsOf(versions: Record<string, unknown>): string[] {
  return Object.entries(versions)
    .filter(([name]) => name !== 'python')
    .map(([name, value]) => {
      const { version, extras } = typeof value === 'string' ? { version: value } : fieldsOf(value)
      const chosen = Array.isArray(extras) && extras.length > 0 ? `[${extras.join(',')}]` : ''
      return `${name}${chosen}${typeof version === 'string' ? range(version) : ''}`
    })
}

/** Translates Poetry's `^1.2.3` and `~1.2` for pip. */
function range(version: string): string {
  const [, sign, number] = /^\s*([\^~])\s*(\d+(?:\.\d+)*)\s*$/.exec(version) ?? []
  if (sign === undefined || number === undefined) {
    const trimmed = version.trim()
    if (trimmed === '*' || trimmed === '') return ''
    return /^\d/.test(trimmed) ? `==${trimmed}` : trimmed
  }
  const parts = number.split('.').map(Number)
  const significant = parts.findIndex((part) => part !== 0)
  const at =
    sign === '~' ? Math.min(1, parts.length - 1) : significant === -1 ? parts.length - 1 : significant
  const next = parts.slice(0, at + 1).map((part, index) => (index === at ? part + 1 : part))
  return `>=${number},<${next.join('.')}`
}
