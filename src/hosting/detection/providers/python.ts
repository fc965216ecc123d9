import { shellQuote } from '../../../runtime/shell-quote.ts'
import { type Provider, startCommand } from '../candidate.ts'
import { type PythonPackages, readPythonPackages } from '../python/packages.ts'
import type { SourceDirectory } from '../source.ts'
import { anyVersion } from '../versions.ts'

const VENV = '.venv'

/** Usual modules of apps, in order. */
const MODULES = ['main', 'app', 'server', 'wsgi', 'asgi', 'api', 'run', 'application', 'index', '__main__']
const DIRECTORIES = ['', 'app/', 'src/', 'api/', 'backend/', 'src/app/']

/** Frameworks, by the class that an app of theirs is an instance of. */
const ASGI = /^(\w+)\s*(?::[^=\n]+)?=\s*(?:\w+\.)*(?:FastAPI|Starlette|Litestar|Quart)\(/m
const FLASK = /^(\w+)\s*(?::[^=\n]+)?=\s*(?:\w+\.)*Flask\(/m
const FACTORY = /^def (create_app|make_app)\(/m

/** Python: an app object, a file or a tool that serves. */
export const python: Provider = {
  name: 'python',
  marks:
    /^(?:requirements\.txt|pyproject\.toml|Pipfile|manage\.py|(?:main|app|server|wsgi|asgi|api|run|application|index|__main__)\.py)$/,
  async look(directory, machine) {
    const packages = await readPythonPackages(directory, machine)
    const manage = await directory.text('manage.py')
    const modules = await findModules(directory)
    if (packages === null && manage === null && modules.length === 0) return []
    const {
      name,
      command,
      also = [],
    } = (manage === null ? null : django(manage, packages)) ??
    asgi(modules, packages) ??
    flask(modules, packages) ??
    tool(modules, packages) ??
    plain(modules)
    const install = packages?.install(also) ?? null
    const interpreter = install === null ? 'python3' : 'python'
    const files = [
      'requirements.txt',
      'pyproject.toml',
      'Pipfile',
      'manage.py',
      ...modules.map(({ path }) => path),
    ]
    const file = directory.first(files)
    return [
      {
        kind: name === null ? 'Python' : `Python (${name})`,
        strength: command === null ? 'none' : name === null ? 'weak' : 'proven',
        install,
        build: null,
        start: command === null ? null : startCommand(command.replaceAll('{python}', interpreter)),
        obstacle:
          'There is a list of Python packages, but no main.py, app.py or manage.py that would say how the app starts.',
        path: install === null ? [] : [`${VENV}/bin`],
        tools: [anyVersion('python3')],
        evidence: file === null ? [] : [await directory.evidence(file)],
        runs: /(?:^|[\s/;&])(?:python3?|gunicorn|uvicorn|hypercorn|daphne|waitress-serve|flask|streamlit|celery)\b/,
      },
    ]
  },
}

/** A start command, with `{python}` in place of the interpreter. */
interface Start {
  name: string | null
  command: string | null
  /** Packages that the start needs besides the listed ones. */
  also?: string[]
}

/** A Python file that may be an app. */
interface Module {
  path: string
  text: string
  /** Its name when imported from the directory `root`. */
  name: string
  root: string
}

async function findModules(app: SourceDirectory): Promise<Module[]> {
  const found: Module[] = []
  for (const directory of DIRECTORIES) {
    for (const name of MODULES) {
      const path = `${directory}${name}.py`
      const text = await app.code(path)
      if (text === null) continue
      // A package is imported by its directory's name. Imports are relative to any other directory.
      const isPackage = directory !== '' && (await app.has(`${directory}__init__.py`))
      const inPackage = isPackage || (directory !== '' && directory !== 'src/' && directory !== 'backend/')
      const dotted = inPackage ? `${directory.replaceAll('/', '.')}${name}` : name
      found.push({ path, text, name: dotted, root: inPackage ? '' : directory.replace(/\/$/, '') })
    }
  }
  return found
}

function django(manage: string, packages: PythonPackages | null): Start {
  const settings = /DJANGO_SETTINGS_MODULE['"]\s*,\s*['"]([\w.]+)['"]/.exec(manage)?.[1]
  const project = settings?.split('.')[0]
  const migrate = '{python} manage.py migrate --noinput'
  const serve =
    project !== undefined && packages?.has('gunicorn')
      ? `exec gunicorn ${project}.wsgi --bind $HOST:$PORT`
      : 'exec {python} manage.py runserver --noreload $HOST:$PORT'
  return { name: 'Django', command: `${migrate} && ${serve}` }
}

function asgi(modules: readonly Module[], packages: PythonPackages | null): Start | null {
  for (const { text, name, root } of modules) {
    const variable = ASGI.exec(text)?.[1]
    if (variable === undefined) continue
    const framework = /\bFastAPI\(/.test(text)
      ? 'FastAPI'
      : (/\b(Starlette|Litestar|Quart)\(/.exec(text)?.[1] ?? 'ASGI')
    const from = root === '' ? '' : ` --app-dir ${shellQuote([root])}`
    const command = `uvicorn ${name}:${variable}${from} --host $HOST --port $PORT`
    return { name: framework, command, also: packages?.has('uvicorn') ? [] : ['uvicorn'] }
  }
  return null
}

function flask(modules: readonly Module[], packages: PythonPackages | null): Start | null {
  const found =
    modules.find(({ text }) => FLASK.test(text)) ??
    modules.find(({ text }) => FACTORY.test(text) && /\bFlask\b/.test(text))
  if (found === undefined) return null
  const variable = FLASK.exec(found.text)?.[1] ?? `${FACTORY.exec(found.text)?.[1]}()`
  const target = `${found.name}:${variable}`
  const from = found.root === '' ? '' : shellQuote([found.root])
  const command = packages?.has('gunicorn')
    ? `gunicorn ${from === '' ? '' : `--chdir ${from} `}--bind $HOST:$PORT ${shellQuote([target])}`
    : `${from === '' ? '' : `cd ${from} && `}{python} -m flask --app ${shellQuote([target])} run --host $HOST --port $PORT`
  return { name: 'Flask', command }
}

/** Programs that run an app's file in their own way. */
function tool(modules: readonly Module[], packages: PythonPackages | null): Start | null {
  const [first] = modules
  if (first === undefined) return null
  if (packages?.has('streamlit')) {
    const options = '--server.port $PORT --server.address $HOST --server.headless true'
    return { name: 'Streamlit', command: `streamlit run ${shellQuote([first.path])} ${options}` }
  }
  if (!packages?.has('gradio')) return null
  const command = `GRADIO_SERVER_NAME=$HOST GRADIO_SERVER_PORT=$PORT {python} -u ${shellQuote([first.path])}`
  return { name: 'Gradio', command }
}

function plain(modules: readonly Module[]): Start {
  const [first] = modules
  return { name: null, command: first === undefined ? null : `{python} -u ${shellQuote([first.path])}` }
}
