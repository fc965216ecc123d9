import { posix } from 'node:path'
import { shellQuote } from '../../../runtime/shell-quote.ts'
import { type Candidate, type Provider, startCommand } from '../candidate.ts'
import { type AppObject, findAppObjects, type PythonModule, readModules } from '../python/app-objects.ts'
import { django } from '../python/django.ts'
import {
  installPython,
  PACKAGE_LISTS,
  type PythonPackages,
  type PythonStart,
  readPythonPackages,
} from '../python/packages.ts'
import type { SourceDirectory } from '../source.ts'

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
    if (packages === null && directory.above.some((above) => above.first(LISTS) !== null)) return []
    const modules = await readModules(directory, packages === null ? listed(directory) : [])
    const start = await findStart(directory, modules, packages)
    if (packages === null && start === null) return []
    const { install, tools } = await installPython(directory, packages, start?.also ?? [], machine)
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
    }
    return [candidate]
  },
}

/** Files that a directory below belongs to. */
const LISTS = ['requirements.txt', 'pyproject.toml', 'Pipfile', 'setup.py', 'manage.py']

/** Returns the directories below that have a list of their own, which their code needs. */
const listed = (directory: SourceDirectory): string[] =>
  directory.files.filter((path) => LISTS.includes(posix.basename(path))).map((path) => posix.dirname(path))

async function findStart(
  directory: SourceDirectory,
  modules: readonly PythonModule[],
  packages: PythonPackages | null,
): Promise<PythonStart | null> {
  return (
    (await django(directory, packages)) ??
    (await stated(directory, packages)) ??
    (await byObject(directory, findAppObjects(modules), packages)) ??
    (await byTool(directory, modules)) ??
    (await byScript(directory, packages)) ??
    (await byFile(directory, modules))
  )
}

/** The app that FLASK_APP names, in `.flaskenv`. */
async function stated(
  directory: SourceDirectory,
  packages: PythonPackages | null,
): Promise<PythonStart | null> {
  const line = /^\s*(?:export\s+)?FLASK_APP\s*=\s*['"]?([^'"\s#]+)/m
  const app = line.exec(await directory.textOf('.flaskenv'))?.[1]
  if (app === undefined) return null
  const evidence = [await directory.evidence('.flaskenv', line)]
  const target = app.includes(':') ? app : app.replace(/\.py$/, '')
  return { ...flaskCommand(target, '', packages), name: 'Flask', strength: 'proven', evidence }
}

function flaskCommand(
  target: string,
  root: string,
  packages: PythonPackages | null,
): Pick<PythonStart, 'command' | 'also'> {
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
): Promise<PythonStart | null> {
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

async function byTool(
  directory: SourceDirectory,
  modules: readonly PythonModule[],
): Promise<PythonStart | null> {
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
async function byScript(
  directory: SourceDirectory,
  packages: PythonPackages | null,
): Promise<PythonStart | null> {
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
async function byFile(
  directory: SourceDirectory,
  modules: readonly PythonModule[],
): Promise<PythonStart | null> {
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
