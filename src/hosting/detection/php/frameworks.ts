import type { GeneratedSecret } from '../../app-runtime/plan.ts'
import type { SourceDirectory } from '../source.ts'
import type { Composer } from './composer.ts'

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
