import type { SourceDirectory } from '../source.ts'

/** A file of Python code. */
export interface PythonModule {
  /** Relative to the app's directory. */
  readonly path: string
  readonly text: string
  /** Its name when imported from `root`. */
  readonly name: string
  /** The directory that has to be on Python's path, relative to the app's; empty for the app's itself. */
  readonly root: string
}

/** An object or a factory that responds to requests. */
export interface AppObject {
  readonly module: PythonModule
  /** `app`, or `create_app()` for a factory. */
  readonly expression: string
  readonly framework: Framework
  /** Matches the line that makes it. */
  readonly line: RegExp
}

/** A framework for programs that respond to requests. */
export interface Framework {
  readonly name: string
  /** The interface between it and a server. */
  readonly protocol: 'asgi' | 'wsgi' | 'own'
  /** The package to import. */
  readonly module: string
  /** Matches the call that makes an app. */
  readonly made: string
}

const FRAMEWORKS: readonly Framework[] = [
  { name: 'FastAPI', protocol: 'asgi', module: 'fastapi', made: 'FastAPI' },
  { name: 'Starlette', protocol: 'asgi', module: 'starlette', made: 'Starlette' },
  { name: 'Litestar', protocol: 'asgi', module: 'litestar', made: 'Litestar' },
  { name: 'Quart', protocol: 'asgi', module: 'quart', made: 'Quart' },
  { name: 'BlackSheep', protocol: 'asgi', module: 'blacksheep', made: 'Application' },
  { name: 'Falcon', protocol: 'asgi', module: 'falcon.asgi', made: 'App' },
  { name: 'Sanic', protocol: 'own', module: 'sanic', made: 'Sanic' },
  { name: 'Flask', protocol: 'wsgi', module: 'flask', made: 'Flask' },
  { name: 'Flask', protocol: 'wsgi', module: 'connexion', made: 'FlaskApp' },
  { name: 'Falcon', protocol: 'wsgi', module: 'falcon', made: 'App' },
  { name: 'Pyramid', protocol: 'wsgi', module: 'pyramid', made: 'make_wsgi_app' },
]

/** Files that are read for apps, nearest first. @bound peer */
const MAX_FILES = 300

/** Code that is not the app's. */
const ASIDE =
  /(?:^|\/)(?:tests?|testing|docs?|examples?|samples?|migrations|alembic|scripts?|node_modules|site-packages|venv|env)\/|(?:^|\/)(?:test_[^/]*|[^/]*_test|conftest|setup|noxfile|fabfile|gunicorn\.conf|gunicorn_conf)\.py$/

/** Usual names of modules with the app, likeliest first. */
const NAMES = [
  'wsgi',
  'asgi',
  'main',
  'app',
  'server',
  'application',
  '__init__',
  'api',
  'web',
  'run',
  'index',
  'site',
  '__main__',
]

/** Usual names of variables with the app. */
const VARIABLES = /^(?:app|application|api|server|asgi|wsgi|asgi_app|wsgi_app|flask_app|web_app|webapp)$/

/**
 * Reads the Python files of an app, likeliest first: near the top, and of usual names.
 *
 * @param apart directories, relative to the app's, whose code is of other apps
 */
export async function readModules(
  directory: SourceDirectory,
  apart: readonly string[] = [],
): Promise<PythonModule[]> {
  const paths = directory.files
    .filter((path) => path.endsWith('.py') && !ASIDE.test(path))
    .filter((path) => !apart.some((other) => path.startsWith(`${other}/`)))
    .sort((a, b) => likelihood(a) - likelihood(b) || (a < b ? -1 : 1))
    .slice(0, MAX_FILES)
  const files: { path: string; text: string }[] = []
  for (const path of paths) files.push({ path, text: await directory.code(path) })
  const imported = new Set(
    files.flatMap(({ text }) => [...text.matchAll(/^\s*(?:from|import)\s+(\w+)/gm)].map(([, name]) => name)),
  )
  return files.map(({ path, text }) => ({ path, text, ...importOf(path, text, directory, imported) }))
}

/** Smaller for what is likelier the app. */
function likelihood(path: string): number {
  const names = path.split('/')
  const index = NAMES.indexOf((names.at(-1) ?? '').replace(/\.py$/, ''))
  return names.length * 100 + (index === -1 ? NAMES.length : index)
}

/** Returns how a file is imported: from the directory above its outermost package. */
function importOf(
  path: string,
  text: string,
  directory: SourceDirectory,
  imported: ReadonlySet<string | undefined>,
): Pick<PythonModule, 'name' | 'root'> {
  const names = path.replace(/\.py$/, '').split('/')
  let root = names.length - 1
  const isPackage = (length: number): boolean =>
    directory.has(`${names.slice(0, length).join('/')}/__init__.py`)
  while (root > 0 && isPackage(root)) root -= 1
  // A directory without `__init__.py` is a package too where something imports it by its name.
  const isNamespace = (): boolean =>
    imported.has(names[root - 1]) || (root === names.length - 1 && /^\s*from\s+\./m.test(text))
  while (root > 0 && names[root - 1] !== 'src' && isNamespace()) root -= 1
  const parts = names.slice(root)
  if (parts.length > 1 && parts.at(-1) === '__init__') parts.pop()
  return { name: parts.join('.'), root: names.slice(0, root).join('/') }
}

/**
 * Returns the objects and factories that respond to requests, likeliest first: made by a framework's own class, then by a
 * call of a function, then a function without required arguments that makes one.
 */
export function findAppObjects(modules: readonly PythonModule[]): AppObject[] {
  const used = FRAMEWORKS.filter((framework) => modules.some(({ text }) => imports(text, framework)))
  const found = modules.flatMap((module) => {
    const ownFrameworks = used.filter((framework) => imports(module.text, framework))
    const lines = topLevelLines(module.text)
    const made = ownFrameworks.flatMap((framework) => objectsOf(module, lines, framework))
    // `app = create_app()`: the framework may be imported where that function is.
    const [likely] = ownFrameworks.length > 0 ? ownFrameworks : used
    const called = likely === undefined || made.length > 0 ? [] : callsOf(module, lines, likely)
    const factories =
      made.length + called.length > 0
        ? []
        : ownFrameworks.flatMap((framework) => factoriesOf(module, framework))
    return [
      ...made.map((object) => ({ object, rank: 0 })),
      ...called.map((object) => ({ object, rank: 1 })),
      ...factories.map((object) => ({ object, rank: 2 })),
    ]
  })
  // A file for servers (wsgi.py, asgi.py) comes before the one that defines the app.
  const isForServers = ({ object }: (typeof found)[number]): number =>
    /(?:^|\/)[aw]sgi\.py$/.test(object.module.path) ? 0 : 1
  return found
    .sort((a, b) => isForServers(a) - isForServers(b) || a.rank - b.rank)
    .map(({ object }) => object)
}

const imports = (text: string, { module }: Framework): boolean =>
  new RegExp(
    `^\\s*(?:from\\s+${module.replace('.', '\\.')}(?:\\.\\w+)*\\s+import|import\\s+(?:[\\w., ]+,\\s*)?${module.replace('.', '\\.')}\\b)`,
    'm',
  ).test(text)

/** Returns the lines of a module that are in no function and in no class, also those in `if` and `try`. */
function topLevelLines(text: string): string[] {
  const code = text.replace(/("""|''')[\s\S]*?(?:\1|$)/g, '""')
  const enclosing: number[] = []
  return code.split(/\r?\n/).filter((line) => {
    const indent = line.search(/\S/)
    if (indent === -1) return false
    while (enclosing.length > 0 && indent <= (enclosing.at(-1) ?? 0)) enclosing.pop()
    const isInside = enclosing.length > 0
    if (/^\s*(?:async\s+def|def|class)\b/.test(line)) enclosing.push(indent)
    return !isInside
  })
}

const ASSIGNMENT = /^\s*(\w+)\s*(?::[^=]+)?=\s*((?:\w+\.)*\w+)\(/

const objectsOf = (module: PythonModule, lines: readonly string[], framework: Framework): AppObject[] =>
  lines.flatMap((line) => {
    const [, variable, called] = ASSIGNMENT.exec(line) ?? []
    if (variable === undefined || called?.split('.').at(-1) !== framework.made) return []
    return [objectOf(module, variable, framework)]
  })

const callsOf = (module: PythonModule, lines: readonly string[], framework: Framework): AppObject[] =>
  lines.flatMap((line) => {
    const [, variable] = ASSIGNMENT.exec(line) ?? []
    return variable !== undefined && VARIABLES.test(variable) ? [objectOf(module, variable, framework)] : []
  })

const objectOf = (module: PythonModule, variable: string, framework: Framework): AppObject => ({
  ...{ module, expression: variable, framework },
  line: new RegExp(`^\\s*${variable}\\s*(?::[^=]+)?=`),
})

const FACTORY =
  /^def\s+((?:create|make|build|get|init)_?(?:\w+_)?(?:app|application|api|server|asgi|wsgi))\s*\(([^)]*)\)/gm

function factoriesOf(module: PythonModule, framework: Framework): AppObject[] {
  if (!new RegExp(`\\b${framework.made}\\(`).test(module.text)) return []
  return [...module.text.matchAll(FACTORY)].flatMap(([, name = '', parameters = '']) => {
    const isCallable = parameters.split(',').every((one) => one.trim() === '' || /[=*]/.test(one))
    const line = new RegExp(`^def\\s+${name}\\b`)
    return isCallable ? [{ module, expression: `${name}()`, framework, line }] : []
  })
}
