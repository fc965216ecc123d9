import { posix } from 'node:path'
import { shellQuote } from '../../../runtime/shell-quote.ts'
import type { Evidence } from '../../app-runtime/plan.ts'
import { type Provider, startCommand } from '../candidate.ts'
import type { Machine } from '../machine.ts'
import { type Composer, missingExtensions, readComposer } from '../php/composer.ts'
import { databaseWarnings, type Framework, findFramework } from '../php/frameworks.ts'
import {
  HEROKU,
  herokuRoot,
  isFrontController,
  serve,
  servedRoot,
  usualRoot,
  WEB_ROOTS,
} from '../php/web-root.ts'
import { readProcfile } from '../procfile.ts'
import type { SourceDirectory } from '../source.ts'
import { anyVersion, readPin, type ToolNeed } from '../versions.ts'

/** PHP: a web root, which PHP itself serves, or a program that listens. */
export const php: Provider = {
  name: 'php',
  marks: /^(?:composer\.json|index\.php)$/,
  async look(directory, machine) {
    if (isWithinApp(directory)) return []
    const composer = await readComposer(directory, machine)
    const framework = await findFramework(directory, composer)
    const start = await findStart(directory, composer, framework)
    if (composer === null && start === null) return []
    const extensions =
      composer === null ? await usedExtensions(directory, framework, machine) : { needs: [], warnings: [] }
    const pin = await readPin(directory, 'php', { files: ['.php-version'], names: ['php'] })
    return [
      {
        kind: framework === null ? 'PHP' : `PHP (${framework.name})`,
        strength: start === null ? 'none' : start.isPage ? 'pages' : 'proven',
        install: composer?.install ?? null,
        build: framework?.build ?? null,
        start:
          start === null
            ? null
            : startCommand([framework?.before, start.command].filter(Boolean).join(' && ')),
        obstacle: `There is a composer.json, but no index.php in ${WEB_ROOTS.slice(0, 2).join('/, ')}/ or its own directory, and no program that listens.`,
        variables: { COMPOSER_ALLOW_SUPERUSER: '1', PHP_CLI_SERVER_WORKERS: '4', ...framework?.variables },
        secrets: framework?.secrets ?? {},
        tools: [
          ...(composer?.tools ?? [anyVersion('php'), ...extensions.needs]),
          ...(pin === null ? [] : [pin]),
        ],
        evidence: [
          ...(start?.evidence ?? []),
          ...(composer === null
            ? []
            : [await directory.evidence('composer.json', framework?.line ?? /"require"/)]),
        ],
        runs: /(?:^|[\s/;&])(?:php|composer)\b/,
        replaces: HEROKU,
        warnings: [...extensions.warnings, ...(await databaseWarnings(directory, framework))],
      },
    ]
  },
}

/** How an app starts. */
interface Start {
  readonly command: string
  readonly evidence: readonly Evidence[]
  /** Whether it may be a page for browsers with a little PHP beside it. */
  readonly isPage?: boolean
}

/** Reports whether a directory is a part of an app above it, or of a package. */
function isWithinApp(directory: SourceDirectory): boolean {
  if (/(?:^|\/)vendor(?:\/|$)/.test(directory.path)) return true
  if (directory.has('composer.json')) return false
  for (let above = directory.parent; above !== null; above = above.parent) {
    if (above.has('composer.json') || above.has('index.php')) return true
    // The source itself is looked at without a mark.
    if (above.path === '' && usualRoot(above) === directory.path) return true
  }
  return false
}

async function findStart(
  directory: SourceDirectory,
  composer: Composer | null,
  framework: Framework | null,
): Promise<Start | null> {
  const web = (await readProcfile(directory)).get('web') ?? ''
  const scripts = Object.values(composer?.scripts ?? {}).flat()
  const stated = [herokuRoot(web), ...scripts.map((script) => servedRoot(String(script)))]
  const root =
    [...stated, framework?.root].find((one) => one != null && hasPages(directory, one)) ??
    usualRoot(directory)
  if (root !== null) {
    const isFront = framework !== null || /\s-C\s/.test(web) || (await isFrontController(directory, root))
    const page = [root, 'index.php'].filter(Boolean).join('/')
    return {
      command: serve(root, isFront),
      evidence: [
        ...(herokuRoot(web) === null ? [] : [await directory.evidence('Procfile', /^\s*web\s*:/)]),
        ...(directory.has(page) ? [await directory.evidence(page)] : []),
      ],
    }
  }
  return (await listening(directory)) ?? pagesBeside(directory)
}

const hasPages = (directory: SourceDirectory, root: string): boolean =>
  directory.files.some(
    (path) => path.startsWith(root === '' ? '' : `${root}/`) && /\.(?:php|html)$/.test(path),
  )

/** Matches a program that listens itself. */
const LISTENS =
  /\b(?:React\\(?:Http|Socket)\\|Workerman\\Worker|Swoole\\(?:\w+\\)?Server|Amp\\Http\\Server)|\bsocket_create_listen\(|\bstream_socket_server\(/

/** A file near the top that listens. */
async function listening(directory: SourceDirectory): Promise<Start | null> {
  for (const path of directory.files.filter((file) => /^(?:(?:bin|src)\/)?[^/]+\.php$/.test(file))) {
    if (!LISTENS.test((await directory.code(path)) ?? '')) continue
    return {
      command: `exec php ${shellQuote([path])}`,
      evidence: [await directory.evidence(path, LISTENS)],
    }
  }
  return null
}

/** Most files of a page that are read for what they call. */
const MAX_CALLERS = 20

/** A page with PHP beside it, as for its forms, or further down where the page or a script of it calls it. */
async function pagesBeside(directory: SourceDirectory): Promise<Start | null> {
  if (!directory.has('index.html')) return null
  const scripts = directory.files.filter((path) => path.endsWith('.php'))
  const script = scripts.find((path) => !path.includes('/')) ?? (await calledScript(directory, scripts))
  if (script === undefined) return null
  const evidence = [await directory.evidence('index.html'), await directory.evidence(script)]
  return { command: serve('', false), evidence, isPage: true }
}

/** Returns the first of these scripts whose path a page or a script of the directory has in it. */
async function calledScript(
  directory: SourceDirectory,
  scripts: readonly string[],
): Promise<string | undefined> {
  if (scripts.length === 0) return undefined
  const callers = directory.files.filter((path) => /^[^/]+\.(?:html|js)$/.test(path)).slice(0, MAX_CALLERS)
  const texts = await Promise.all(callers.map((path) => directory.code(path)))
  return scripts.find((path) => texts.some((text) => text?.includes(path)))
}

/** What code says that calls an extension which not every PHP has. */
const USES: ReadonlyArray<readonly [extension: string, uses: RegExp]> = [
  ['pdo_sqlite', /new\s+\\?PDO\(\s*['"]sqlite:/],
  ['pdo_mysql', /new\s+\\?PDO\(\s*['"]mysql:/],
  ['pdo_pgsql', /new\s+\\?PDO\(\s*['"]pgsql:/],
  ['sqlite3', /new\s+\\?SQLite3\(/],
  ['mysqli', /\bmysqli_connect\(|new\s+\\?mysqli\(/],
  ['mbstring', /\bmb_(?:str|sub|conv|internal)\w*\(/],
  ['curl', /\bcurl_init\(/],
  ['gd', /\bimagecreate\w*\(/],
  ['dom', /new\s+\\?DOMDocument\b/],
  ['simplexml', /\bsimplexml_load_\w+\(/],
  ['zip', /new\s+\\?ZipArchive\b/],
  ['intl', /new\s+\\?(?:NumberFormatter|IntlDateFormatter|Collator)\(/],
]

/** Most files of an app without composer.json whose extensions are looked for. */
const MAX_LOOKED_AT = 100

/** Extensions without which an app is not there at all. */
const DATABASES = /^(?:pdo_|sqlite3$|mysqli$)/

/**
 * Returns the missing extensions that the code of an app without composer.json calls unasked: those of databases and of
 * the first pages are needs, others a warning, since only a part of it calls them.
 */
async function usedExtensions(
  directory: SourceDirectory,
  framework: Framework | null,
  machine: Machine,
): Promise<{ needs: ToolNeed[]; warnings: string[] }> {
  if (framework !== null) return { needs: [], warnings: [] }
  const files = directory.files.filter(
    (path) => path.endsWith('.php') && !/(?:^|\/)(?:vendor|tests?)\//.test(path),
  )
  const used = new Map<string, string>()
  for (const path of files.slice(0, MAX_LOOKED_AT)) {
    const text = (await directory.code(path)) ?? ''
    if (/\b(?:extension_loaded|function_exists|class_exists)\(/.test(text)) continue
    for (const [extension, uses] of USES)
      if (uses.test(text) && !used.has(extension)) used.set(extension, path)
  }
  const root = usualRoot(directory) ?? ''
  const needs: ToolNeed[] = []
  const warnings: string[] = []
  for (const [extension, path] of used) {
    const file = [directory.path, path].filter(Boolean).join('/')
    const missing = await missingExtensions([extension], file, machine)
    const isNeeded = DATABASES.test(extension) || posix.dirname(path) === (root || '.')
    if (isNeeded) needs.push(...missing)
    else if (missing.length > 0)
      warnings.push(
        `${file} calls the PHP extension ${extension}, which is not installed: what uses it fails.`,
      )
  }
  return { needs, warnings }
}
