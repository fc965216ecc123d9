import { shellQuote } from '../../../runtime/shell-quote.ts'
import type { Evidence } from '../../app-runtime/plan.ts'
import type { SourceDirectory } from '../source.ts'
import { dependsOn, type PackageJson, resolveScript } from './package-json.ts'

/** Programs that run a file, in scripts. */
const RUNTIMES = /(?:^|[\s/"'])(?:node|nodemon|tsx|ts-node|ts-node-dev|bun|vite-node|supervisor)(?=\s)/

/** Matches scripts that run several programs. */
const SEVERAL = /[&|;]|\b(?:concurrently|npm-run-all|run-[ps])\b/

/** Usual paths of servers that no script names. */
const COMMON_NAMES = ['index', 'server', 'app', 'main', 'src/index', 'src/server', 'src/app', 'src/main']
const ENDINGS = ['ts', 'js', 'mjs', 'cjs', 'tsx', 'mts']

/** Packages for writing servers. */
const SERVERS = [
  ...['express', 'fastify', 'koa', 'hono', 'elysia', '@nestjs/core', '@hapi/hapi', 'polka', 'h3', 'restify'],
  ...[
    '@adonisjs/core',
    '@feathersjs/express',
    '@loopback/rest',
    'sails',
    'moleculer-web',
    'micro',
    'apollo-server',
  ],
]

/** Reports whether a package depends on one for writing servers. */
export const dependsOnServer = (pkg: PackageJson): boolean => dependsOn(pkg, ...SERVERS)

/** Matches a line of a program that listens. */
const LISTENS = /\.listen\(|\bBun\.serve\(|\bserve\(|\bstartStandaloneServer\(|\bNestFactory\.create/

/** Matches the code of a program that responds to requests. */
const SERVES =
  /\bBun\.serve\b|\bcreateServer\b|\.listen\(|\bserve\(|export default (?:app|server|\{)|\bnew (?:Hono|Elysia)\b/

/**
 * Returns the file that runs a package without a start script: its main file, the one its dev script runs, or a usual
 * one. Returns null if there is none.
 */
export async function findEntry(app: SourceDirectory, pkg: PackageJson): Promise<string | null> {
  for (const path of [pkg.main, pkg.module]) {
    const entry = path === null ? null : resolveFile(app, path)
    if (entry !== null) return entry
  }
  const ofDev = await entryOfScript(app, pkg, 'dev')
  if (ofDev !== null) return ofDev
  // If there are pages, it may be code for browsers.
  const pages = app.first(['index.html', 'public/index.html', 'src/index.html']) !== null
  const paths = commonEntries(COMMON_NAMES).filter((path) => app.has(path))
  for (const path of paths)
    if (!pages || dependsOnServer(pkg) || SERVES.test(await app.code(path))) return path
  return null
}

/** Returns a server's file in a directory without a package.json, or null. Ignores scripts of a page. */
export async function findLooseEntry(app: SourceDirectory): Promise<string | null> {
  const page = app.has('index.html')
  const paths = commonEntries(['main', 'index', 'server', 'app']).filter((path) => app.has(path))
  for (const path of paths)
    if (!page || path.startsWith('server.') || SERVES.test(await app.code(path))) return path
  return null
}

/**
 * Returns the command that runs a file: by Bun for TypeScript and for files that only Bun understands, else by
 * Node.js.
 */
export async function runFile(app: SourceDirectory, path: string, preferBun: boolean): Promise<string> {
  const text = await app.code(path)
  const exported = /\bexport default\b/.test(text) && !/\.listen\(|\bserve\(/.test(text)
  const forBun = preferBun || /\.[cm]?tsx?$/.test(path) || usesBun(text) || exported
  return `${forBun ? 'bun' : 'node'} ${shellQuote([path])}`
}

/** Returns where the file that a script starts listens, also if it is built of another one; null if that is not seen. */
export async function findListening(app: SourceDirectory, script: string): Promise<Evidence | null> {
  const words = script.split(/[\s"']+/).filter((word) => /^[\w./-]+$/.test(word) && !word.startsWith('-'))
  for (const word of words.reverse()) {
    const source = word.replace(/\.[cm]?js$/, '').replace(/^(?:\.\/)?(?:dist|build|lib|out)\//, '')
    const file =
      resolveFile(app, word) ??
      resolveFile(app, `src/${source.replace(/^src\//, '')}`) ??
      resolveFile(app, source)
    const found = file === null ? null : await app.evidence(file, LISTENS)
    if (found !== null && found.line !== null) return found
  }
  return null
}

/** Returns the file that a script only runs, or null if it does anything else. */
export async function entryOfScript(
  app: SourceDirectory,
  pkg: PackageJson,
  name: string,
): Promise<string | null> {
  const script = resolveScript(pkg, name)
  if (script === null || !RUNTIMES.test(` ${script}`) || SEVERAL.test(script)) return null
  const words = script.split(/[\s"']+/).filter((word) => word !== '' && !word.startsWith('-'))
  for (const word of words.reverse()) {
    const found = resolveFile(app, word)
    if (found !== null) return found
  }
  return null
}

/** Finds a file as Node.js does: the extension may be missing, or the path a directory. */
function resolveFile(app: SourceDirectory, path: string): string | null {
  const plain = path.replace(/^\.\//, '').replace(/\/$/, '')
  if (plain === '' || plain.startsWith('/') || plain.split('/').includes('..')) return null
  const found = app.first([plain, ...commonEntries([plain, `${plain}/index`])])
  return found !== null && /\.[cm]?[jt]sx?$|(?:^|\/)[\w-]+$/.test(found) ? found : null
}

const commonEntries = (names: readonly string[]): string[] =>
  names.flatMap((name) => ENDINGS.map((ending) => `${name}.${ending}`))

/**
 * Largest JavaScript that is parsed, in characters: a hostile one of this size takes Bun's parser less than 0.2 s.
 * @bound peer
 */
const MAX_PARSED = 128 * 1024

/** Matches text that may use Bun, also in strings and comments. */
const MAYBE = /\bBun\b|['"`]bun[:'"`]/

/** Takes the place of the global `Bun` where it is used. No code has it. */
const MARK = '__berth_global_bun__'

/** Matches calls that import Bun's modules, in code without comments. */
const REQUIRES = /\brequire\(\s*['"]bun[:'"]|\bglobalThis\.Bun\b/

/**
 * Reports whether JavaScript needs Bun: whether it imports `bun` or `bun:…`, or uses the global `Bun`. What strings and comments
 * say does not count. Text that is no JavaScript, or too long to be parsed, is only searched.
 */
function usesBun(code: string): boolean {
  if (!MAYBE.test(code)) return false
  if (code.length > MAX_PARSED) return true
  try {
    // As JavaScript: with the types of TypeScript some texts of a few KiB take the parser seconds.
    const transpiler = new Bun.Transpiler({ loader: 'jsx', define: { Bun: MARK } })
    const { imports } = transpiler.scan(code)
    if (imports.some(({ path }) => path === 'bun' || path.startsWith('bun:'))) return true
    const plain = transpiler.transformSync(code)
    return plain.includes(MARK) || REQUIRES.test(plain)
  } catch {
    return true
  }
}
