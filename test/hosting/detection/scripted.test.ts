import { describe, expect, test } from 'bun:test'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { LocalWorkspace } from '../../../src/compute/local/workspace.ts'
import { type Detection, detectApp } from '../../../src/hosting/detection/detect.ts'
import type { Machine } from '../../../src/hosting/detection/machine.ts'
import { phpVersion } from '../../../src/hosting/detection/php/composer.ts'

/** A machine with PHP 8.2, few of its extensions, and Ruby 3.1. */
const MACHINE: Machine = {
  has: async () => true,
  toolchains: async (tool) => {
    const version = { php: '8.2.36', ruby: '3.1.2' }[tool] ?? '1.0.0'
    const isExtension = tool.startsWith('php-')
    return isExtension
      ? []
      : [{ tool, version, path: `/usr/bin/${tool}`, bin: '/usr/bin', isDefault: true, source: 'system' }]
  },
  memoryBytes: null,
  check: async (_program, options) =>
    options?.[0] === '-m'
      ? { works: true, version: null, output: '[PHP Modules]\nCore\nPDO\npdo_sqlite\nZend OPcache\n' }
      : { works: true, version: null },
}

async function found(files: Readonly<Record<string, string>>): Promise<Detection> {
  const path = mkdtempSync(join(tmpdir(), 'berth-scripted-'))
  try {
    for (const [file, text] of Object.entries(files)) {
      mkdirSync(dirname(join(path, 'app', file)), { recursive: true })
      writeFileSync(join(path, 'app', file), text)
    }
    const workspace = new LocalWorkspace(path)
    return await detectApp({ workspace, directory: 'app', machine: MACHINE })
  } finally {
    rmSync(path, { recursive: true, force: true })
  }
}

const commandOf = ({ start }: Detection): string =>
  start?.kind === 'command' ? start.command : `${start?.kind}`

const requiring = (...names: string[]): string =>
  JSON.stringify({ require: Object.fromEntries(names.map((name) => [name, '*'])) })

describe('a constraint of Composer', () => {
  test.each([
    ['^8.1', ['8.1.0', '8.4.2'], ['8.0.30', '9.0.0']],
    ['^7.3|^8.0', ['7.4.33', '8.2.0'], ['7.2.0', '9.0.0']],
    ['>=7.4 <8.3', ['7.4.0', '8.2.36'], ['8.3.0', '7.3.9']],
    ['>= 7.4, < 8.3', ['8.2.36'], ['8.3.0']],
    ['~8.1', ['8.1.0', '8.9.0'], ['9.0.0', '8.0.9']],
    ['~8.1.2', ['8.1.9'], ['8.2.0', '8.1.1']],
    ['~8', ['8.9.0'], ['9.0.0']],
    ['7.4 - 8.1', ['8.0.0', '8.1.9'], ['8.2.0', '7.3.0']],
    ['8.1.*@stable', ['8.1.9'], ['8.2.0']],
    ['*', ['5.6.0'], []],
  ])('%s allows what Composer allows', (wanted, fitting, others) => {
    const need = phpVersion(wanted, 'composer.json')
    expect(need).toMatchObject({ wanted, isStrict: true })
    expect(fitting.filter((version) => !need.fits(version))).toEqual([])
    expect(others.filter((version) => need.fits(version))).toEqual([])
  })
})

describe('PHP', () => {
  test('Laravel gets its key, its directories and its tables', async () => {
    const app = await found({
      artisan: '',
      'composer.json': requiring('php', 'laravel/framework'),
      'public/index.php': '<?php',
      '.env.example': 'APP_KEY=\nDB_CONNECTION=sqlite\n',
    })
    expect(app).toMatchObject({ kind: 'PHP (Laravel)', problem: null })
    expect(app.install).toContain('composer install --no-dev --no-interaction')
    expect(app.build).toContain('storage/framework/views')
    expect(commandOf(app)).toMatch(/php artisan migrate --force && .*php -S "\$HOST:\$PORT" -t public /)
    expect(app.env.APP_KEY).toMatchObject({ generated: 'laravel', default: null })
  })

  test('a database that berth does not run is named with the remedy', async () => {
    const files = { 'composer.json': requiring('laravel/framework'), 'public/index.php': '' }
    const { warnings } = await found({ ...files, '.env.example': 'DB_CONNECTION=mysql\n' })
    expect(warnings.join()).toMatch(
      /\.env\.example asks for the database mysql, and berth runs no database: .*--server-hosts/,
    )
    const press = await found({ 'index.php': '', 'wp-load.php': '' })
    expect(press.warnings.join()).toContain('WordPress needs MySQL or MariaDB')
  })

  test('Symfony runs in production, with a secret unless its own .env has one', async () => {
    const files = {
      'composer.json': requiring('symfony/framework-bundle', 'symfony/asset-mapper'),
      'public/index.php': '',
    }
    const app = await found(files)
    expect(app).toMatchObject({ build: 'php bin/console asset-map:compile', variables: { APP_ENV: 'prod' } })
    expect(app.env.APP_SECRET).toMatchObject({ required: true, generated: 'hex' })
    const own = await found({ ...files, '.env': 'APP_SECRET=0123\n' })
    expect(own.env.APP_SECRET).toMatchObject({ required: false })
  })

  test.each([
    ['heroku-php-apache2', ''],
    ['vendor/bin/heroku-php-apache2 web/', 'web'],
    ['vendor/bin/heroku-php-nginx -C nginx.conf -i php.ini public', 'public'],
    ['heroku-php-nginx -F fpm.conf ./public/', 'public'],
  ])('the Procfile command %s serves its directory', async (command, root) => {
    const app = await found({
      Procfile: `web: ${command}\n`,
      'composer.json': '{}',
      'index.php': '',
      'web/index.php': '',
      'public/index.php': '',
    })
    expect(commandOf(app)).toContain(`-t ${root || '.'} `)
  })

  test('extensions that the code calls are named where they are missing, but none that it asks for first', async () => {
    const { problem } = await found({ 'index.php': '<?php new PDO("sqlite:x"); imagecreatetruecolor(1, 1);' })
    expect(problem?.message).toMatch(
      /needs the PHP extension gd \(index\.php\), which .*apt install php-gd\)/,
    )
    expect(
      await found({ 'index.php': '<?php if (extension_loaded("gd")) imagecreate(1, 1);' }),
    ).toMatchObject({
      problem: null,
    })
  })
})

describe('Ruby', () => {
  const RAILS = {
    'config/application.rb': 'class Application < Rails::Application',
    'config/database.yml': '',
  }

  test('Rails gets its secret, its assets and its tables, and Puma at the port', async () => {
    const app = await found({
      ...RAILS,
      Gemfile: "gem 'rails'\ngem 'puma'\ngem 'sqlite3'",
      'Gemfile.lock': '',
      'app/assets/site.css': '',
    })
    expect(app).toMatchObject({
      kind: 'Ruby (Rails)',
      build: 'SECRET_KEY_BASE_DUMMY=1 bundle exec rails assets:precompile',
      variables: { RAILS_ENV: 'production', BUNDLE_FROZEN: 'true' },
      warnings: [],
    })
    expect(commandOf(app)).toBe(
      'bundle exec rails db:prepare && bundle exec puma -b "tcp://$HOST:$PORT" || exit $?',
    )
    expect(app.env.SECRET_KEY_BASE).toMatchObject({ required: true, generated: 'hex' })
  })

  test('a gem of the group for development is not one of the app', async () => {
    const Gemfile = "group :development, :test do\n  gem 'puma'\nend\ngem 'thin'\n"
    expect(commandOf(await found({ Gemfile, 'config.ru': 'run App' }))).toContain(
      'thin start -a $HOST -p $PORT',
    )
  })

  test.each([
    ["ruby '3.1.2'", true],
    ["ruby '~> 3.0'", true],
    ["ruby '>= 3.0', '< 3.1'", false],
    ["ruby '2.7.8'", false],
  ])('%s of a Gemfile is obeyed', async (line, fits) => {
    const { problem } = await found({ Gemfile: `${line}\ngem 'puma'\n`, 'config.ru': 'run App' })
    expect(problem === null).toBe(fits)
  })
})

test('a theme of Jekyll runs with the gems that its gemspec names', async () => {
  const app = await found({
    Gemfile: 'gemspec',
    'theme.gemspec': "s.add_runtime_dependency 'jekyll', '> 3'",
    '_config.yml': 'title: x',
  })
  expect(app.kind).toBe('Jekyll')
  expect(app.install).toContain('bundle install')
  expect(app.build).toContain('bundle exec jekyll build')
})

test('a file whose imports only Deno resolves is run by Deno', async () => {
  const code =
    'import { listenAndServe } from "https://deno.land/std@0.111.0/http/server.ts"\nlistenAndServe(":8080", f)'
  expect(commandOf(await found({ 'mod.js': code }))).toContain('deno run --allow-all mod.js')
})

describe('pages of a generator', () => {
  test.each([
    [{ 'hugo.toml': 'title = "t"' }, 'Hugo', 'public'],
    [{ 'config.yaml': 'baseURL: /x', 'content/a.md': '' }, 'Hugo', 'public'],
    [{ 'config/_default/hugo.toml': '' }, 'Hugo', 'public'],
    [{ 'config.toml': 'base_url = "x"', 'content/a.md': '', 'templates/a.html': '' }, 'Zola', 'public'],
    [{ 'book.toml': '[book]' }, 'mdBook', 'book'],
    [{ 'book.toml': '[output.html]\n[output.linkcheck]' }, 'mdBook', 'book/html'],
    [{ 'mkdocs.yml': 'site_name: x' }, 'MkDocs', 'site'],
    [{ 'pelicanconf.py': 'AUTHOR = "x"', 'content/a.md': '' }, 'Pelican', 'output'],
    [{ 'docs/conf.py': 'project = "x"' }, 'Sphinx', '_build/html'],
    [{ '_config.yml': 'theme: minima', 'README.md': '' }, 'Jekyll', '_site'],
    [{ 'config.rb': '', Gemfile: "gem 'middleman'" }, 'Middleman', 'build'],
  ])('%j are found', async (files, kind, folder) => {
    const app = await found(files as Record<string, string>)
    expect(app).toMatchObject({ kind, start: { kind: 'files', folder } })
    expect(app.build).toBeString()
  })

  test('are not part of an app beside them, nor before it', async () => {
    const app = await found({ 'mkdocs.yml': 'site_name: x', 'index.php': '<?php', 'public/index.html': '' })
    expect(app).toMatchObject({ kind: 'PHP', build: null })
  })

  test('files of other programs with their names are not taken for them', async () => {
    expect((await found({ 'config.toml': 'port = 1', 'server.php': '' })).kind).toBeNull()
    expect((await found({ 'config.yaml': 'a: 1', 'content/a.md': '' })).kind).toBeNull()
  })
})
