import { shellQuote } from '../../../runtime/shell-quote.ts'
import type { Evidence } from '../../app-runtime/plan.ts'
import { type Candidate, type Provider, type Strength, startCommand } from '../candidate.ts'
import type { Machine } from '../machine.ts'
import { type AppObject, findAppObjects, type PythonModule, readModules } from '../python/app-objects.ts'
import {
  type Interpreter,
  NO_LIST,
  PACKAGE_LISTS,
  type PythonPackages,
  pythonNeeds,
  readPythonPackages,
} from '../python/packages.ts'
import type { SourceDirectory } from '../source.ts'
import { chooseTools } from '../versions.ts'

const RUNS =
  /(?:^|[\s/;&])(?:python[\d.]*|pip|uv|poetry|pipenv|gunicorn|uvicorn|hypercorn|daphne|granian|waitress-serve|flask|fastapi|streamlit|chainlit|celery|rq|django-admin)\b/

/** Python: Django, an app object of a framework, a tool that runs a file, a script of the project, or a file that listens. */
export const python: Provider = {
  name: 'python',
  marks: new RegExp(
    `${PACKAGE_LISTS.source}|^(?:manage|streamlit_app|main|app|server|wsgi|asgi|api|run|application|index|__main__)\\.py$`,
  ),
  async look(directory, machine) {
    const packages = await readPythonPackages(directory)
    // A directory without a list of its own belongs to the one above that has it.
    if (packages === null && hasListAbove(directory)) return []
    const modules = await readModules(directory)
    const start = await findStart(directory, modules, packages)
    if (packages === null && start === null) return []
    const tools = packages?.tools ?? (await pythonNeeds(directory))
    const also = start?.also ?? []
    const install = (packages ?? NO_LIST).install(await interpreterOf(tools, machine), also)
    const { strength = 'none', name = null, command = null, build = null, evidence = [] } = start ?? {}
    const inVenv = (text: string): string =>
      text.replaceAll('{python}', install === null ? 'python3' : 'python')
    const candidate: Candidate = {
      kind: name === null ? 'Python' : `Python (${name})`,
      strength,
      install,
      build: build === null ? null : inVenv(build),
      start: command === null ? null : startCommand(inVenv(command)),
      obstacle: obstacleOf(modules, packages),
      path: ['.venv/bin'],
      variables: start?.variables ?? {},
      tools,
      evidence: [...evidence, ...(packages?.evidence ?? [])],
      runs: RUNS,
      warnings: packages?.warnings ?? [],
    }
    return [candidate]
  },
}

/** How an app starts, with `{python}` in place of the interpreter. */
interface Start {
  readonly name: string | null
  readonly strength: Strength
  readonly command: string
  readonly build?: string
  /** Packages that the start needs besides the listed ones. */
  readonly also?: readonly string[]
  /** Variables that it needs and the app may set itself. */
  readonly variables?: Readonly<Record<string, string>>
  readonly evidence: readonly Evidence[]
}

function hasListAbove(directory: SourceDirectory): boolean {
  for (let above = directory.parent; above !== null; above = above.parent) {
    const at = above
    if (
      ['requirements.txt', 'pyproject.toml', 'Pipfile', 'setup.py', 'manage.py'].some((name) => at.has(name))
    )
      return true
  }
  return false
}

/** Returns the Python that is chosen for an app. */
async function interpreterOf(tools: PythonPackages['tools'], machine: Machine): Promise<Interpreter> {
  const { programs, tools: found } = await chooseTools(tools, machine)
  const version = found.find(({ name }) => name === 'python')?.found ?? '3'
  return { program: programs.get('python') ?? 'python3', version }
}

async function findStart(
  directory: SourceDirectory,
  modules: readonly PythonModule[],
  packages: PythonPackages | null,
): Promise<Start | null> {
  return (
    (await django(directory, packages)) ??
    (await stated(directory, packages)) ??
    (await byObject(directory, findAppObjects(modules), packages)) ??
    (await byTool(directory, modules)) ??
    (await byScript(directory, packages)) ??
    (await byFile(directory, modules))
  )
}

/** Django: its own manage.py, near the top. */
async function django(directory: SourceDirectory, packages: PythonPackages | null): Promise<Start | null> {
  const paths = directory.files.filter((path) => /^(?:[^/]+\/){0,2}manage\.py$/.test(path))
  const path = paths.sort((a, b) => a.split('/').length - b.split('/').length)[0]
  const manage = path === undefined ? null : await directory.text(path)
  const settings = /DJANGO_SETTINGS_MODULE['"]\s*,\s*['"]([\w.]+)['"]/.exec(manage ?? '')?.[1]
  if (path === undefined || manage === null || !/django/i.test(manage)) return null
  const folder = path.slice(0, Math.max(0, path.lastIndexOf('/')))
  const project = settings?.split('.')[0] ?? 'config'
  const missing = await databaseDirectories(directory, folder, project)
  const within = [
    ...(folder === '' ? [] : [`cd ${shellQuote([folder])} && `]),
    ...(missing.length === 0 ? [] : [`mkdir -p ${shellQuote(missing)} && `]),
  ].join('')
  const at = (file: string): string => [folder, file].filter(Boolean).join('/')
  const has = (name: string): boolean => packages?.has(name) ?? false
  const asgi = directory.has(at(`${project}/asgi.py`))
  const serve =
    has('daphne') && asgi
      ? `exec daphne -b $HOST -p $PORT ${project}.asgi:application`
      : has('uvicorn') && asgi && !has('gunicorn')
        ? `exec uvicorn ${project}.asgi:application --host $HOST --port $PORT`
        : has('gunicorn')
          ? `exec gunicorn ${project}.wsgi --bind $HOST:$PORT`
          : 'exec {python} manage.py runserver --noreload $HOST:$PORT'
  const root = await staticRoot(directory, at(project))
  return {
    name: 'Django',
    strength: 'proven',
    command: `${within}{python} manage.py migrate --noinput && ${serve}`,
    variables: await allowedHosts(directory, at(project)),
    ...(root === null
      ? {}
      : {
          build: `[ "$DISABLE_COLLECTSTATIC" = 1 ] || { ${within}{python} manage.py collectstatic --noinput; }`,
        }),
    evidence: [await directory.evidence(path, /DJANGO_SETTINGS_MODULE/), ...(root === null ? [] : [root])],
  }
}

const settingsOf = (directory: SourceDirectory, project: string): string[] =>
  directory.files.filter(
    (path) => path.startsWith(`${project}/`) && /settings/.test(path) && path.endsWith('.py'),
  )

/** Matches how settings read the host names that they allow, and the separator of a list of them. */
const HOSTS =
  /(?:getenv|environ(?:\.get)?|config|env(?:\.list)?)\s*[([]\s*["'](\w*ALLOWED_HOSTS)["'](?:.*\.split\((["'] ["'])?\))?/

/** Returns the variable by which the settings learn the hosts they may answer for, with those of berth's addresses. */
async function allowedHosts(directory: SourceDirectory, project: string): Promise<Record<string, string>> {
  for (const path of settingsOf(directory, project)) {
    const [all, name] = HOSTS.exec((await directory.code(path)) ?? '') ?? []
    if (all === undefined || name === undefined) continue
    const separator = /\.split\((?:["'] ["'])?\)$/.test(all) ? ' ' : ','
    return { [name]: ['127.0.0.1', 'localhost', '.localhost'].join(separator) }
  }
  return {}
}

/** Matches the directory, below that of manage.py, of a file of SQLite. */
const DATABASE = /BASE_DIR\s*[,/]\s*["']([\w.-]+)["']\s*[,/]\s*["'][\w.-]+\.(?:sqlite3?|db)["']/g

/** Returns the directories of databases that the settings name and the source does not have: SQLite makes none. */
async function databaseDirectories(
  directory: SourceDirectory,
  folder: string,
  project: string,
): Promise<string[]> {
  const at = (path: string): string => [folder, path].filter(Boolean).join('/')
  const texts = await Promise.all(settingsOf(directory, at(project)).map((path) => directory.code(path)))
  const named = texts.flatMap((text) => [...(text ?? '').matchAll(DATABASE)].map(([, name = '']) => name))
  return [...new Set(named)].filter(
    (name) => !directory.files.some((path) => path.startsWith(`${at(name)}/`)),
  )
}

/** Returns where the settings say where static files are collected; null if they do not. */
async function staticRoot(directory: SourceDirectory, project: string): Promise<Evidence | null> {
  for (const path of settingsOf(directory, project)) {
    const found = await directory.evidence(path, /^\s*STATIC_ROOT\s*=\s*(?!None\b)/)
    if (found.line !== null) return found
  }
  return null
}

/** The app that FLASK_APP names, in `.flaskenv`. */
async function stated(directory: SourceDirectory, packages: PythonPackages | null): Promise<Start | null> {
  const line = /^\s*(?:export\s+)?FLASK_APP\s*=\s*['"]?([^'"\s#]+)/m
  const app = line.exec((await directory.text('.flaskenv')) ?? '')?.[1]
  if (app === undefined) return null
  const evidence = [await directory.evidence('.flaskenv', line)]
  const target = app.includes(':') ? app : app.replace(/\.py$/, '')
  return { ...flaskCommand(target, '', packages), name: 'Flask', strength: 'proven', evidence }
}

function flaskCommand(
  target: string,
  root: string,
  packages: PythonPackages | null,
): Pick<Start, 'command' | 'also'> {
  const from = root === '' ? '' : shellQuote([root])
  const app = shellQuote([target])
  if (packages?.has('gunicorn') && target.includes(':')) {
    return { command: `gunicorn ${from === '' ? '' : `--chdir ${from} `}--bind $HOST:$PORT ${app}` }
  }
  const also = packages === null || !packages.has('flask') ? ['flask'] : []
  return {
    also,
    command: `${from === '' ? '' : `cd ${from} && `}{python} -m flask --app ${app} run --host $HOST --port $PORT`,
  }
}

async function byObject(
  directory: SourceDirectory,
  objects: readonly AppObject[],
  packages: PythonPackages | null,
): Promise<Start | null> {
  const [object] = objects
  if (object === undefined) return null
  const { module, framework, expression, line } = object
  const has = (name: string): boolean => packages?.has(name) ?? false
  const target = `${module.name}:${expression}`
  const found = {
    name: framework.name,
    strength: 'proven' as const,
    evidence: [await directory.evidence(module.path, line)],
  }
  if (framework.protocol === 'asgi') {
    const from = module.root === '' ? '' : ` --app-dir ${shellQuote([module.root])}`
    const factory = expression.endsWith('()') ? ' --factory' : ''
    // Without one of these packages uvicorn refuses every WebSocket.
    const sockets = has('websockets') || has('wsproto') ? [] : ['websockets']
    return {
      ...found,
      command: `uvicorn ${shellQuote([target.replace(/\(\)$/, '')])}${factory}${from} --host $HOST --port $PORT`,
      also: [...(has('uvicorn') ? [] : ['uvicorn']), ...sockets],
    }
  }
  if (framework.name === 'Sanic') {
    const within = module.root === '' ? '' : `cd ${shellQuote([module.root])} && `
    return { ...found, command: `${within}sanic ${shellQuote([target])} --host $HOST --port $PORT` }
  }
  // Sockets need the server that the file itself starts.
  if (has('flask-socketio') && !has('gunicorn')) return { ...found, command: runFile(module) }
  if (framework.name === 'Flask') return { ...found, ...flaskCommand(target, module.root, packages) }
  if (/^if __name__\s*==/m.test(module.text) && !has('gunicorn'))
    return { ...found, command: runFile(module) }
  const within = module.root === '' ? '' : `--chdir ${shellQuote([module.root])} `
  return {
    ...found,
    command: `gunicorn ${within}--bind $HOST:$PORT ${shellQuote([target])}`,
    also: has('gunicorn') ? [] : ['gunicorn'],
  }
}

/** Programs that run a file in their own way: the package to import, and the command for the file. */
const TOOLS: readonly { name: string; module: string; files: readonly string[]; command: string }[] = [
  {
    name: 'Streamlit',
    module: 'streamlit',
    files: ['streamlit_app.py', 'app.py', 'main.py', 'Home.py'],
    command:
      'streamlit run FILE --server.port $PORT --server.address $HOST --server.headless true --browser.gatherUsageStats false',
  },
  {
    name: 'Gradio',
    module: 'gradio',
    files: ['app.py', 'main.py', 'demo.py'],
    command:
      'GRADIO_SERVER_NAME=$HOST GRADIO_SERVER_PORT=$PORT GRADIO_ANALYTICS_ENABLED=False {python} -u FILE',
  },
  { name: 'Dash', module: 'dash', files: ['app.py', 'main.py', 'index.py'], command: '{python} -u FILE' },
  {
    name: 'Chainlit',
    module: 'chainlit',
    files: ['app.py', 'main.py'],
    command: 'chainlit run FILE --headless --host $HOST --port $PORT',
  },
  {
    name: 'Panel',
    module: 'panel',
    files: ['app.py', 'main.py'],
    command: "panel serve FILE --address $HOST --port $PORT --allow-websocket-origin '*'",
  },
  { name: 'NiceGUI', module: 'nicegui', files: ['main.py', 'app.py'], command: '{python} -u FILE' },
]

async function byTool(directory: SourceDirectory, modules: readonly PythonModule[]): Promise<Start | null> {
  for (const { name, module, files, command } of TOOLS) {
    const line = new RegExp(`^\\s*(?:import\\s+${module}\\b|from\\s+${module}\\b)`, 'm')
    const users = modules.filter(({ text }) => line.test(text))
    const found = files.map((file) => users.find(({ path }) => path === file)).find(Boolean) ?? users[0]
    if (found === undefined) continue
    return {
      ...{ name, strength: 'proven' as const },
      command: command.replace('FILE', shellQuote([found.path])),
      evidence: [await directory.evidence(found.path, line)],
    }
  }
  return null
}

/** Packages with which servers are written. */
const SERVER_PACKAGES = [
  ...[
    'fastapi',
    'starlette',
    'uvicorn',
    'flask',
    'gunicorn',
    'aiohttp',
    'tornado',
    'bottle',
    'sanic',
    'quart',
  ],
  ...['litestar', 'hypercorn', 'waitress', 'cherrypy', 'django', 'streamlit', 'gradio', 'dash'],
]

/** A command that the project installs: the one of its own name, or one that sounds like a server. */
async function byScript(directory: SourceDirectory, packages: PythonPackages | null): Promise<Start | null> {
  if (packages === null || !packages.installsItself) return null
  const names = Object.keys(packages.scripts)
  // The only command of a project may be a tool: it is a server if the project has what servers are written with.
  const [only] = names.length === 1 && SERVER_PACKAGES.some((name) => packages.has(name)) ? names : []
  const name = names.find((one) => /serve|server|web|run|start|app/.test(one)) ?? only
  if (name === undefined) return null
  const line = new RegExp(`^\\s*["']?${name.replaceAll('.', '\\.')}["']?\\s*=`)
  return {
    name: null,
    strength: 'stated',
    command: shellQuote([name]),
    evidence: [await directory.evidence('pyproject.toml', line)],
  }
}

/** Matches code that listens. */
const LISTENS =
  /\bserve_forever\(|\brun_app\(|\.listen\(|\b(?:app|application|server|bottle|web|socketio|uvicorn|cherrypy|hypercorn|waitress)\.(?:run|serve|quickstart)\(|\bserve\(\w|\bHTTPServer\(|\bmake_server\(|\bstart_server\(|\bcreate_server\(|\brun\(.*\b(?:host|port)\s*=/

const USUAL =
  /^(?:src\/|app\/|api\/|backend\/)?(?:main|app|server|run|wsgi|asgi|api|application|index|__main__|web)\.py$/

/** A file that listens, else one of a usual name. */
async function byFile(directory: SourceDirectory, modules: readonly PythonModule[]): Promise<Start | null> {
  const listening = modules.filter(({ text }) => LISTENS.test(text))
  const found = listening.find(({ path }) => USUAL.test(path)) ?? listening[0]
  if (found !== undefined) {
    const evidence = [await directory.evidence(found.path, LISTENS)]
    return { name: frameworkOf(found.text), strength: 'proven', command: runFile(found), evidence }
  }
  const usual = modules.find(({ path }) => USUAL.test(path))
  if (usual === undefined) return null
  return {
    name: null,
    strength: 'weak',
    command: runFile(usual),
    evidence: [await directory.evidence(usual.path)],
  }
}

const frameworkOf = (text: string): string | null =>
  [...text.matchAll(/^\s*(?:import|from)\s+(aiohttp|tornado|bottle|cherrypy|dash|twisted)\b/gm)]
    .map(([, name = '']) => name[0]?.toUpperCase() + name.slice(1))
    .at(0) ?? null

/** Runs a file as `python FILE` does, and one of a package as `python -m`, so that it finds the package's other modules. */
function runFile({ path, name, root }: PythonModule): string {
  if (!name.includes('.')) return `{python} -u ${shellQuote([path])}`
  return `${root === '' ? '' : `cd ${shellQuote([root])} && `}{python} -u -m ${shellQuote([name.replace(/\.__main__$/, '')])}`
}

/** Says what of the app was seen. */
function obstacleOf(modules: readonly PythonModule[], packages: PythonPackages | null): string {
  const list = packages?.evidence[0]?.file ?? 'a list of Python packages'
  const files = modules.slice(0, 5).map(({ path }) => path)
  const scripts = Object.keys(packages?.scripts ?? {})
  const seen = [
    ...(files.length === 0
      ? []
      : [`the code is in ${files.join(', ')}${modules.length > files.length ? ' and others' : ''}`]),
    ...(scripts.length === 0 ? [] : [`it installs the commands ${scripts.slice(0, 5).join(', ')}`]),
  ]
  return `There is ${list}, but no file, object or command that would be a server${seen.length === 0 ? '' : `: ${seen.join('; ')}`}.`
}
