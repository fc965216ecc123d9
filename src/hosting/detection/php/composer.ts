import { fieldsOf } from '../../../runtime/is-object.ts'
import type { GeneratedSecret } from '../../app-runtime/plan.ts'
import type { Machine } from '../machine.ts'
import type { SourceDirectory } from '../source.ts'
import { anyVersion, bySpecifiers, type ToolNeed } from '../versions.ts'

/** What a directory's composer.json says. */
export interface Composer {
  /** The names of what it requires. */
  readonly requires: readonly string[]
  /** The command that installs its packages; null if there are none. */
  readonly install: string | null
  readonly scripts: Readonly<Record<string, unknown>>
  readonly tools: readonly ToolNeed[]
}

/** Leaves packages that are in the source without a lock as they are. */
const INSTALL =
  '{ [ -e vendor/autoload.php ] && [ ! -e composer.lock ]; } || composer install --no-dev --no-interaction --no-progress --optimize-autoloader'

/**
 * Reads composer.json and what of the machine it needs; null for none.
 *
 * @throws AppError for a mistake in it
 */
export async function readComposer(directory: SourceDirectory, machine: Machine): Promise<Composer | null> {
  const found = await directory.json('composer.json')
  if (found === null) return null
  const { scripts, autoload, require: required } = fieldsOf(found)
  const requires = fieldsOf(required)
  const names = Object.keys(requires)
  // Names without a slash are those of PHP itself.
  const installs = autoload !== undefined || names.some((name) => name.includes('/'))
  const file = directory.pathOf('composer.json')
  const extensions = names.flatMap((name) => /^ext-(.+)$/.exec(name)?.[1] ?? [])
  return {
    requires: names,
    install: installs ? INSTALL : null,
    scripts: fieldsOf(scripts),
    tools: [
      typeof requires.php === 'string' ? phpVersion(requires.php, file) : anyVersion('php'),
      ...(installs ? [anyVersion('composer')] : []),
      ...(await missingExtensions(extensions, file, machine)),
    ],
  }
}

/** Returns the need of a version in a constraint of Composer, such as `^8.1 || >=7.4 <8`. */
export function phpVersion(wanted: string, file: string): ToolNeed {
  const specifiers = wanted
    .replace(/@\w+/g, '')
    .replace(/\s+-\s+/g, ',<=')
    .replace(/(^|[|,\s])(\d[\w.]*),<=/g, '$1>=$2,<=')
    .replace(/([<>=!~^])\s+/g, '$1')
    .trim()
    .split(/\s*\|\|?\s*/)
    .map((all) =>
      all
        .split(/[\s,]+/)
        // Its `~` lets the last number grow, as `~=` of Python does, and `~8` is `^8`.
        .map((one) => (/^~\d+$/.test(one) ? `^${one.slice(1)}` : one.replace(/^~(?!=)/, '~=')))
        .join(','),
    )
  return { ...bySpecifiers('php', specifiers.join('||'), file), wanted }
}

/**
 * Returns a need for each of these extensions that the machine's PHP does not have: a tool named `php-EXTENSION`, which
 * nobody finds.
 */
export async function missingExtensions(
  extensions: readonly string[],
  file: string,
  machine: Machine,
): Promise<ToolNeed[]> {
  if (extensions.length === 0) return []
  const listed = await machine.check('php', ['-m'])
  if (!listed.works || listed.output === undefined) return []
  const loaded = new Set(listed.output.split('\n').map((line) => plain(line)))
  return extensions
    .filter((name) => !loaded.has(plain(name)))
    .map((name) => anyVersion(`php-${plain(name)}`, file))
}

/** Returns a name as both lists can be compared: `Zend OPcache` is `ext-zend-opcache`. */
const plain = (name: string): string => name.trim().toLowerCase().replaceAll(/\s/g, '-')

/** What a framework needs besides its packages. */
export interface Framework {
  readonly name: string
  /** Matches the package that an app requires. */
  readonly requires: RegExp
  /** Matches the line of composer.json that requires it. */
  readonly line?: RegExp
  /** The directory of its index page. */
  readonly root?: string
  readonly build?: string
  /** Runs before the server. */
  readonly before?: string
  readonly variables?: Readonly<Record<string, string>>
  readonly secrets?: Readonly<Record<string, GeneratedSecret>>
}

const FRAMEWORKS: readonly Framework[] = [
  {
    name: 'Laravel',
    requires: /^laravel\/(?:lumen-)?framework$/,
    root: 'public',
    build:
      'mkdir -p storage/framework/cache/data storage/framework/sessions storage/framework/views storage/logs bootstrap/cache',
    before:
      '{ [ "$' +
      '{DB_CONNECTION:-sqlite}" != sqlite ] || [ -n "$DB_DATABASE" ] || touch database/database.sqlite; } && php artisan migrate --force',
    secrets: { APP_KEY: 'laravel' },
  },
  {
    name: 'Symfony',
    requires: /^symfony\/framework-bundle$/,
    root: 'public',
    variables: { APP_ENV: 'prod', APP_DEBUG: '0' },
    secrets: { APP_SECRET: 'hex' },
  },
  {
    name: 'CodeIgniter',
    requires: /^codeigniter4\/framework$/,
    root: 'public',
    build: 'mkdir -p writable/cache writable/logs writable/session writable/uploads writable/debugbar',
    variables: { CI_ENVIRONMENT: 'production' },
  },
  {
    name: 'CakePHP',
    requires: /^cakephp\/cakephp$/,
    root: 'webroot',
    build: 'mkdir -p logs tmp/cache/models tmp/cache/persistent tmp/cache/views tmp/sessions',
    secrets: { SECURITY_SALT: 'hex' },
  },
  { name: 'Yii', requires: /^yiisoft\/yii/, build: 'mkdir -p runtime web/assets' },
  { name: 'Slim', requires: /^slim\/slim$/ },
  { name: 'Mezzio', requires: /^mezzio\/mezzio$/ },
  { name: 'Flight', requires: /^(?:flightphp\/core|mikecao\/flight)$/ },
  { name: 'Drupal', requires: /^drupal\/core/ },
  { name: 'WordPress', requires: /^(?:johnpbloch|roots)\/wordpress/ },
]

/** Returns the framework of an app; null if it has none that is known. */
export async function findFramework(
  directory: SourceDirectory,
  composer: Composer | null,
): Promise<Framework | null> {
  const found = FRAMEWORKS.find(({ requires }) => composer?.requires.some((name) => requires.test(name)))
  const required = composer?.requires.find((name) => found?.requires.test(name))
  if (found !== undefined && required !== undefined) {
    const framework = { ...found, line: new RegExp(`"${required}"`) }
    return found.name === 'Symfony' ? symfony(directory, composer, framework) : framework
  }
  return directory.has('wp-load.php') ? { name: 'WordPress', requires: /^$/ } : null
}

/** Adds what its optional packages want. */
async function symfony(
  directory: SourceDirectory,
  composer: Composer | null,
  framework: Framework,
): Promise<Framework> {
  const has = (name: string): boolean => composer?.requires.includes(name) ?? false
  const steps = [
    ...(has('symfonycasts/sass-bundle') ? ['sass:build'] : []),
    ...(has('symfonycasts/tailwind-bundle') ? ['tailwind:build'] : []),
    ...(has('symfony/asset-mapper') ? ['asset-map:compile'] : []),
  ]
  const isSqlite = /^DATABASE_URL=["']?sqlite:/m.test(await directory.textOf('.env'))
  const migrates = isSqlite && has('doctrine/doctrine-migrations-bundle')
  return {
    ...framework,
    ...(steps.length === 0 ? {} : { build: steps.map((step) => `php bin/console ${step}`).join(' && ') }),
    ...(migrates
      ? { before: 'php bin/console doctrine:migrations:migrate --no-interaction --allow-no-migration' }
      : {}),
  }
}

/** Returns a sentence about a database that an app asks for; none if it asks for none that berth would have to run. */
export async function databaseWarnings(
  directory: SourceDirectory,
  framework: Framework | null,
): Promise<string[]> {
  const remedy =
    'berth runs no database: name the address of one by secrets of the project, and allow its host with --server-hosts.'
  if (framework?.name === 'WordPress' && !directory.has('wp-content/db.php')) {
    return [`WordPress needs MySQL or MariaDB, and ${remedy} wp-config.php can read them with getenv().`]
  }
  for (const file of ['.env', '.env.example', '.env.dist']) {
    const text = await directory.textOf(file)
    const [, asked] =
      /^(?:DB_CONNECTION|DATABASE_URL|DB_DRIVER)\s*=\s*["']?(mysql|mariadb|pgsql|postgres(?:ql)?|sqlsrv)\b/m.exec(
        text,
      ) ?? []
    if (asked !== undefined) return [`${file} asks for the database ${asked}, and ${remedy}`]
    if (text !== '') break
  }
  return []
}
