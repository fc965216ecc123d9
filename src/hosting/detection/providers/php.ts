import { posix } from 'node:path'
import { shellQuote } from '../../../runtime/shell-quote.ts'
import type { Evidence } from '../../app-runtime/plan.ts'
import { type Provider, startCommand } from '../candidate.ts'
import type { Machine } from '../machine.ts'
import {
  type Composer,
  databaseWarnings,
  type Framework,
  findFramework,
  missingExtensions,
  readComposer,
} from '../php/composer.ts'
import type { SourceDirectory } from '../source.ts'
import { anyVersion, readPin, type ToolNeed } from '../versions.ts'
import { readProcfile } from '../workers.ts'

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
    const pin = await readPin(directory, 'php')
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
  return directory.above.some(
    (above) =>
      above.first(['composer.json', 'index.php']) !== null ||
      // The source itself is looked at without a mark.
      (above.path === '' && usualRoot(above) === directory.path),
  )
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

/** Usual directories of the files that a PHP app shows, the most specific first. */
const WEB_ROOTS = ['public', 'web', 'webroot', 'public_html', 'htdocs', 'www', 'html', 'docroot']

/** Matches the programs of Heroku that serve PHP, with a Procfile's options and directory. */
const HEROKU = /^(?:\S*\/)?(?:heroku-)?(?:heroku-)?(?:php-(?:apache2|nginx)|hhvm-\w+)\b(.*)$/

/** Options of these programs that take a value. */
const WITH_VALUE = /^-[CFciIlpt]$/

/** Returns the directory that a Procfile's command serves; null if it is none of Heroku's programs for PHP. */
function herokuRoot(command: string): string | null {
  const rest = HEROKU.exec(command.trim())?.[1]
  if (rest === undefined) return null
  const words = rest.split(/\s+/).filter(Boolean)
  const named = words.filter(
    (word, index) => !word.startsWith('-') && !WITH_VALUE.test(words[index - 1] ?? ''),
  )
  return (named.at(-1) ?? '').replace(/^\.?\/+|\/+$/g, '')
}

/** Returns the directory, relative to a source's, that `php -S` serves in a command; null if it does not call it. */
function servedRoot(command: string): string | null {
  if (!/\bphp\b.*\s-S\s*\S/.test(command)) return null
  return (/\s-t[\s=]*["']?([^\s"';&|]+)/.exec(command)?.[1] ?? '').replace(/^\.?\/+|\/+$/g, '')
}

/** Returns the first usual directory with an index page in PHP; empty for the directory itself, null for none. */
function usualRoot(directory: SourceDirectory): string | null {
  const roots = [...WEB_ROOTS, '', 'src/public', 'app/public', 'src']
  return roots.find((root) => directory.has(root === '' ? 'index.php' : `${root}/index.php`)) ?? null
}

/** Matches what makes Apache give paths without a file to the index page. */
const REWRITES = /^\s*(?:RewriteRule\s.*index\.php|FallbackResource\s)/m

/** Reports whether the index page of a directory answers paths without a file. */
const isFrontController = async (directory: SourceDirectory, root: string): Promise<boolean> =>
  REWRITES.test(await directory.textOf(`${root}/.htaccess`))

/** Hides files whose name begins with a dot, as `php -S` by itself does not. */
const HIDES =
  '<?php $__path = rawurldecode(strtok($_SERVER["REQUEST_URI"], "?")); if (preg_match("~/\\.(?!well-known/)~", $__path)) { http_response_code(404); return true; }'

/** Gives paths without a file to the index page, also those with a dot, which `php -S` by itself refuses. */
const FRONT =
  '$__root = $_SERVER["DOCUMENT_ROOT"]; if ($__path === "/" || is_file($__root . $__path) || glob($__root . rtrim($__path, "/") . "/index.[ph][ht][pm]*") || (preg_match("~^(/.*?\\.php)/~", $__path, $__script) && is_file($__root . $__script[1]))) return false; $_SERVER["SCRIPT_NAME"] = $_SERVER["PHP_SELF"] = "/index.php"; $_SERVER["SCRIPT_FILENAME"] = "$__root/index.php"; chdir($__root); require "$__root/index.php";'

/** Returns the command that serves a directory. */
function serve(root: string, isFront: boolean): string {
  const router = `${HIDES} ${isFront ? FRONT : 'return false;'}`
  const folder = shellQuote([root === '' ? '.' : root])
  return `printf %s ${shellQuote([router])} > "$TMPDIR/router.php" && exec php -S "$HOST:$PORT" -t ${folder} "$TMPDIR/router.php"`
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
    if (!LISTENS.test(await directory.code(path))) continue
    return {
      command: `exec php ${shellQuote([path])}`,
      evidence: [await directory.evidence(path, LISTENS)],
    }
  }
  return null
}

/** Most files of a page that are read for what they call. @bound peer */
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
  return scripts.find((path) => texts.some((text) => text.includes(path)))
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

/** Most files of an app without composer.json whose extensions are looked for. @bound peer */
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
    const text = await directory.code(path)
    if (/\b(?:extension_loaded|function_exists|class_exists)\(/.test(text)) continue
    for (const [extension, uses] of USES)
      if (uses.test(text) && !used.has(extension)) used.set(extension, path)
  }
  const root = usualRoot(directory) ?? ''
  const needs: ToolNeed[] = []
  const warnings: string[] = []
  for (const [extension, path] of used) {
    const file = directory.pathOf(path)
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
