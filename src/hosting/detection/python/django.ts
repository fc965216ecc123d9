import { posix } from 'node:path'
import { shellQuote } from '../../../runtime/shell-quote.ts'
import type { SourceDirectory } from '../source.ts'
import type { PythonPackages, PythonStart } from './packages.ts'

/** Returns how Django starts, by its manage.py near the top; null if there is none. */
export async function django(
  directory: SourceDirectory,
  packages: PythonPackages | null,
): Promise<PythonStart | null> {
  const [path] = directory.files
    .filter((file) => /^(?:[^/]+\/){0,2}manage\.py$/.test(file))
    .sort((a, b) => a.split('/').length - b.split('/').length)
  const manage = path === undefined ? '' : await directory.textOf(path)
  if (path === undefined || !/django/i.test(manage)) return null
  const folder = posix.dirname(path)
  const site = directory.at(folder)
  const project = /DJANGO_SETTINGS_MODULE['"]\s*,\s*['"](\w+)/.exec(manage)?.[1] ?? 'config'
  const settings = await settingsOf(site, project)
  const code = settings.map(({ text }) => text).join('\n')
  const missing = databaseDirectories(site, code)
  const within = [
    ...(folder === '.' ? [] : [`cd ${shellQuote([folder])} && `]),
    ...(missing.length === 0 ? [] : [`mkdir -p ${shellQuote(missing)} && `]),
  ].join('')
  const collects = settings.find(({ text }) => STATIC_ROOT.test(text))
  const collect = `${within}{python} manage.py collectstatic --noinput`
  return {
    name: 'Django',
    strength: 'proven',
    command: `${within}{python} manage.py migrate --noinput && ${serverOf(site, project, packages)}`,
    variables: allowedHosts(code),
    build: collects === undefined ? null : `[ "$DISABLE_COLLECTSTATIC" = 1 ] || { ${collect}; }`,
    evidence: [
      await directory.evidence(path, /DJANGO_SETTINGS_MODULE/),
      ...(collects === undefined ? [] : [await site.evidence(collects.path, STATIC_ROOT)]),
    ],
  }
}

function serverOf(site: SourceDirectory, project: string, packages: PythonPackages | null): string {
  const has = (name: string): boolean => packages?.has(name) ?? false
  const isAsync = site.has(`${project}/asgi.py`)
  if (has('daphne') && isAsync) return `exec daphne -b $HOST -p $PORT ${project}.asgi:application`
  if (has('gunicorn')) return `exec gunicorn ${project}.wsgi --bind $HOST:$PORT`
  if (has('uvicorn') && isAsync) return `exec uvicorn ${project}.asgi:application --host $HOST --port $PORT`
  return 'exec {python} manage.py runserver --noreload $HOST:$PORT'
}

/** Returns the files of settings of a project. */
function settingsOf(site: SourceDirectory, project: string): Promise<{ path: string; text: string }[]> {
  const paths = site.files.filter(
    (path) => path.startsWith(`${project}/`) && /settings/.test(path) && path.endsWith('.py'),
  )
  return Promise.all(paths.map(async (path) => ({ path, text: await site.code(path) })))
}

/** Matches how settings read the host names that they allow, and the separator of a list of them. */
const HOSTS =
  /(?:getenv|environ(?:\.get)?|config|env(?:\.list)?)\s*[([]\s*["'](\w*ALLOWED_HOSTS)["'](?:.*\.split\((?:["'] ["'])?\))?/

/** Returns the variable by which settings learn the hosts they may answer for, with those of berth's addresses. */
function allowedHosts(settings: string): Record<string, string> {
  const [all = '', name] = HOSTS.exec(settings) ?? []
  const separator = /\.split\((?:["'] ["'])?\)$/.test(all) ? ' ' : ','
  return name === undefined ? {} : { [name]: ['127.0.0.1', 'localhost', '.localhost'].join(separator) }
}

/** Matches the directory, below that of manage.py, of a file of SQLite. */
const DATABASE = /BASE_DIR\s*[,/]\s*["']([\w.-]+)["']\s*[,/]\s*["'][\w.-]+\.(?:sqlite3?|db)["']/g

/** Returns the directories of databases that settings name and the source does not have: SQLite makes none. */
function databaseDirectories(site: SourceDirectory, settings: string): string[] {
  const named = [...settings.matchAll(DATABASE)].map(([, name = '']) => name)
  return [...new Set(named)].filter((name) => !site.files.some((path) => path.startsWith(`${name}/`)))
}

/** Matches where settings say where static files are collected. */
const STATIC_ROOT = /^\s*STATIC_ROOT\s*=\s*(?!None\b)/m
