import { describe, expect, test } from 'bun:test'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { LocalWorkspace } from '../../../src/compute/local/workspace.ts'
import { type Detection, detectApp } from '../../../src/hosting/detection/detect.ts'
import type { Machine } from '../../../src/hosting/detection/machine.ts'

/** A machine with these versions of Node.js, the first on PATH, Python, and every package manager but the missing ones. */
const machine = (versions: readonly string[] = ['20.20.2'], missing: readonly string[] = []): Machine => ({
  has: async (name) => !missing.includes(name),
  toolchains: async (tool) =>
    (tool === 'node' ? versions : ['3.11.2']).map((version, index) => ({
      ...{ tool, version, path: `/opt/${tool}-${version}/bin/${tool}`, bin: `/opt/${tool}-${version}/bin` },
      ...{ isDefault: index === 0, source: 'system' as const },
    })),
  check: async () => ({ works: true, version: null }),
  memoryBytes: null,
})

type Files = Readonly<Record<string, string | object>>

/** Detects the app of these files; objects are JSON. */
async function detect(files: Files, on: Machine = machine()): Promise<Detection> {
  const path = mkdtempSync(join(tmpdir(), 'berth-node-'))
  try {
    for (const [name, content] of Object.entries(files)) {
      mkdirSync(dirname(join(path, name)), { recursive: true })
      writeFileSync(
        join(path, name),
        typeof content === 'string' ? content : JSON.stringify(content, null, 2),
      )
    }
    return await detectApp({ workspace: new LocalWorkspace(path), directory: '', machine: on })
  } finally {
    rmSync(path, { recursive: true })
  }
}

const commandOf = ({ start }: Detection): string | null => (start?.kind === 'command' ? start.command : null)

const LISTENS = "require('http').createServer().listen(process.env.PORT)\n"
const START = { scripts: { start: 'node server.js' } }
const EXPRESS = { express: '^5.0.0' }

describe('development packages are left out of the install', () => {
  const installOf = async (pkg: object): Promise<string | null> =>
    (
      await detect({
        'package.json': { dependencies: EXPRESS, ...pkg },
        'package-lock.json': {},
        'server.js': LISTENS,
      })
    ).install

  test.each([
    ['only tools for checks and tests', { nodemon: '3', '@types/node': '22', eslint: '9', jest: '29' }],
    ['none', {}],
  ])('if there are %s', async (_, devDependencies) => {
    const install = await installOf({ ...START, devDependencies })
    expect(install).toBe(`npm ci --no-audit --no-fund${'nodemon' in devDependencies ? ' --omit=dev' : ''}`)
  })

  const devDependencies = { typescript: '5', husky: '9' }
  test.each([
    ...['preinstall', 'install', 'postinstall', 'prepare', 'prestart'].map((name) => [
      `a script ${name}`,
      { scripts: { ...START.scripts, [name]: 'husky' }, devDependencies },
    ]),
    ['a loader', { scripts: { start: 'node -r esbuild-register server.js' }, devDependencies }],
    ['an import', { scripts: { start: 'node --import=tsx server.js' }, devDependencies }],
    [
      'an env file and an import',
      { scripts: { start: 'node --env-file=.env --import tsx server.js' }, devDependencies },
    ],
    [
      'options in NODE_OPTIONS',
      { scripts: { start: 'NODE_OPTIONS="-r x" node server.js' }, devDependencies },
    ],
    ['a package that code may need', { ...START, devDependencies: { ...devDependencies, dotenv: '16' } }],
    ['a build', { scripts: { ...START.scripts, build: 'tsc' }, devDependencies }],
  ] as Array<[string, object]>)('but not beside %s', async (_, pkg) => {
    expect(await installOf(pkg)).toBe('npm ci --no-audit --no-fund')
  })
})

describe('packages are installed', () => {
  const LOCK: Readonly<Record<string, string>> = {
    npm: 'package-lock.json',
    pnpm: 'pnpm-lock.yaml',
    yarn: 'yarn.lock',
    bun: 'bun.lock',
  }
  const installOf = async (pkg: object, locks: readonly string[], on = machine()): Promise<string | null> =>
    (
      await detect(
        {
          'package.json': { ...START, dependencies: EXPRESS, ...pkg },
          'server.js': LISTENS,
          ...Object.fromEntries(locks.map((name) => [LOCK[name] ?? name, '{}'])),
        },
        on,
      )
    ).install

  test.each([
    ['npm', 'npm ci --no-audit --no-fund'],
    ['npm-shrinkwrap.json', 'npm ci --no-audit --no-fund'],
    ['pnpm', 'pnpm install --frozen-lockfile'],
    ['yarn', 'yarn install --non-interactive --frozen-lockfile'],
    ['bun', 'bun install --frozen-lockfile'],
  ])('by %s, exactly as its lock file says, and no second way after that', async (lock, install) => {
    expect(await installOf({}, [lock])).toBe(install)
  })

  test.each([
    [{ packageManager: 'pnpm@9.1.0+sha512.ab' }, ['npm', 'pnpm'], 'pnpm install --frozen-lockfile'],
    [{ packageManager: 'yarn@4.5.0' }, ['npm', 'yarn'], 'yarn install --immutable'],
    [{ volta: { yarn: '1.22.0' } }, ['npm', 'yarn'], 'yarn install --non-interactive --frozen-lockfile'],
    [
      { scripts: { ...START.scripts, preinstall: 'npx -y only-allow pnpm' } },
      ['npm', 'pnpm'],
      'pnpm install --frozen-lockfile',
    ],
    [{ scripts: { start: 'pnpm --filter web start' } }, ['npm', 'pnpm'], 'pnpm install --frozen-lockfile'],
    [{}, ['npm', 'pnpm', 'yarn'], 'npm ci --no-audit --no-fund'],
    [{ packageManager: 'pnpm@9.1.0' }, ['npm'], 'pnpm install --no-lockfile'],
  ])('by the manager that %j names, of the locks of %j', async (pkg, locks, install) => {
    expect(await installOf(pkg, locks)).toBe(install)
  })

  test('by Yarn 2 and later where the lock file is one of those', async () => {
    const { install } = await detect({
      'package.json': { ...START, dependencies: EXPRESS },
      'yarn.lock': '__metadata:\n',
    })
    expect(install).toBe('yarn install --immutable')
  })

  test('by Bun, with a warning, where the server cannot have the manager', async () => {
    const found = await detect(
      { 'package.json': { ...START, dependencies: EXPRESS }, 'pnpm-lock.yaml': '' },
      machine(['20.20.2'], ['pnpm']),
    )
    expect(found.install).toBe('bun install --no-save')
    expect(found.warnings).toEqual([
      'pnpm-lock.yaml asks for pnpm, which the server does not have: Bun installs instead.',
    ])
  })

  test('of several lock files the one that is not used is named', async () => {
    const found = await detect({ 'package.json': START, 'package-lock.json': '{}', 'yarn.lock': '' })
    expect(found.warnings).toEqual(['Packages are installed by package-lock.json; yarn.lock is ignored.'])
  })
})

describe('a script is run', () => {
  test.each([
    ['npm start --workspace web', 'npm run start'],
    ['npm --prefix web start', 'npm run start'],
    ['npx serve-it', 'npm run start'],
    ['npm run serve', 'bun run start'],
    ['node server.js', 'bun run start'],
  ])('%j by the manager if it calls it in a way of its own', async (start, command) => {
    const scripts = { start, serve: 'node server.js' }
    expect(commandOf(await detect({ 'package.json': { scripts }, 'package-lock.json': {} }))).toBe(command)
  })

  test('after an empty file of variables is made, without which Node.js would not start', async () => {
    const pkg = { scripts: { start: 'node --env-file=.env server.js' } }
    const made = '{ [ -e .env ] || : > .env; } && bun run start'
    expect(commandOf(await detect({ 'package.json': pkg }))).toBe(made)
    expect(commandOf(await detect({ 'package.json': pkg, '.env': 'A=1' }))).toBe('bun run start')
  })

  test('with options after a -- of npm', async () => {
    const scripts = { dev: 'vite', postinstall: 'npm --prefix web ci' }
    expect(commandOf(await detect({ 'package.json': { scripts }, 'package-lock.json': {} }))).toBe(
      'NODE_ENV=development npm run dev -- --port $PORT --host $HOST',
    )
  })
})

describe('in a repository of several packages', () => {
  const ROOT = { name: 'root', private: true, workspaces: ['apps/*', 'packages/*'] }
  const FILES: Files = {
    'package.json': ROOT,
    'package-lock.json': {},
    'apps/api/package.json': {
      name: 'api',
      scripts: { start: 'node server.js' },
      dependencies: { ...EXPRESS, '@x/core': '*' },
    },
    'apps/api/server.js': `${LISTENS}`,
    'apps/web/package.json': {
      name: 'web',
      scripts: { build: 'vite build' },
      devDependencies: { vite: '^7' },
    },
    'apps/web/index.html': '',
    'packages/core/package.json': {
      name: '@x/core',
      main: 'dist/index.js',
      scripts: { build: 'tsc' },
      dependencies: { '@x/base': '*' },
    },
    'packages/base/package.json': { name: '@x/base', scripts: { build: 'tsc' } },
  }

  test('one app comes up in its own directory, installed where the lock is, and the other is named', async () => {
    const found = await detect(FILES)
    expect(found).toMatchObject({
      directory: 'apps/api',
      install: '(cd -- ../.. && npm ci --no-audit --no-fund)',
      build: '(cd -- ../../packages/base && bun run build) && (cd -- ../../packages/core && bun run build)',
      path: ['node_modules/.bin', '../../node_modules/.bin'],
      others: [{ directory: 'apps/web', kind: 'Vite (single-page app)', berthJson: null }],
    })
    expect(commandOf(found)).toBe('bun run start')
  })

  test('pnpm-workspace.yaml and lerna.json name packages too', async () => {
    const { 'package.json': _, 'package-lock.json': __, ...rest } = FILES
    const pnpm = await detect({
      ...rest,
      'package.json': { name: 'root' },
      'pnpm-workspace.yaml': 'packages:\n  - "apps/*"\n',
      'pnpm-lock.yaml': '',
    })
    expect(pnpm).toMatchObject({
      directory: 'apps/api',
      install: '(cd -- ../.. && pnpm install --frozen-lockfile)',
    })
    const lerna = await detect({
      ...rest,
      'package.json': { name: 'root', scripts: { start: 'lerna run start' } },
      'lerna.json': { packages: ['apps/*'] },
      'yarn.lock': '',
    })
    expect(lerna).toMatchObject({
      directory: 'apps/api',
      install: expect.stringContaining('cd -- ../.. && yarn'),
    })
  })

  test('a package that no workspace has is installed by itself', async () => {
    const found = await detect({
      'package.json': { name: 'root', scripts: { lint: 'eslint' } },
      'package-lock.json': {},
      'backend/package.json': { ...START, dependencies: EXPRESS },
      'backend/server.js': LISTENS,
    })
    expect(found).toMatchObject({ directory: 'backend', install: 'bun install --no-save' })
  })

  test('pages about the repository at its root are not the app', async () => {
    const found = await detect({
      ...FILES,
      'package.json': {
        ...ROOT,
        devDependencies: { vitepress: '2' },
        scripts: { 'docs:build': 'vitepress build docs' },
      },
    })
    expect(found.directory).toBe('apps/api')
  })

  test('a framework that the root only depends on is not in use there', async () => {
    const found = await detect({ ...FILES, 'package.json': { ...ROOT, devDependencies: { next: '15' } } })
    expect(found.directory).toBe('apps/api')
  })

  test('without an app the packages that could be run are named', async () => {
    const { problem } = await detect({
      'package.json': ROOT,
      'packages/a/package.json': { name: 'a', scripts: { dev: 'node x.js' } },
      'packages/a/x.js': '',
    })
    expect(String(problem)).toContain('This is the root of several packages (apps/*, packages/*)')
    expect(String(problem)).toContain(
      'There is Node.js (bun) in packages/a: name its directory (--directory packages/a)',
    )
  })
})

describe('a server that serves the built files of another package', () => {
  test.each([
    ['client', 'server.js', "app.use(express.static(path.join(__dirname, 'client', 'dist')))"],
    ['frontend', 'server.js', "app.use(express.static('./frontend/build'))"],
  ])('in %s below it has that built first', async (directory, file, code) => {
    const found = await detect({
      'package.json': { scripts: { start: `node ${file}` }, dependencies: EXPRESS },
      [file]: `${code}\n${LISTENS}`,
      [`${directory}/package.json`]: { scripts: { build: 'vite build' }, devDependencies: { vite: '7' } },
      [`${directory}/index.html`]: '',
    })
    expect(found).toMatchObject({
      directory: '',
      install: `(cd -- ${directory} && bun install --no-save) && { bun install --no-save; }`,
      build: `(cd -- ${directory} && bun run build)`,
      others: [],
    })
  })

  test('beside it has that built first', async () => {
    const found = await detect({
      'server/package.json': { scripts: { start: 'node index.js' }, dependencies: EXPRESS },
      'server/index.js': LISTENS,
      'server/routes.js': "app.use(express.static(join(__dirname, '../client/dist')))",
      'client/package.json': { scripts: { build: 'vite build' }, devDependencies: { vite: '7' } },
      'client/index.html': '',
    })
    expect(found).toMatchObject({
      directory: 'server',
      build: '(cd -- ../client && bun run build)',
      others: [],
    })
  })

  test('is not built twice if its own build does that', async () => {
    const found = await detect({
      'package.json': {
        scripts: { start: 'node server.js', 'heroku-postbuild': 'cd client && npm i && npm run build' },
        dependencies: EXPRESS,
      },
      'server.js': `serve('client/dist')\n${LISTENS}`,
      'client/package.json': { scripts: { build: 'vite build' }, devDependencies: { vite: '7' } },
      'client/index.html': '',
    })
    expect(found.build).toBe('bun run heroku-postbuild')
  })
})

describe('the version of Node.js', () => {
  const of = (files: Files, on: Machine): Promise<Detection> =>
    detect({ 'package.json': START, 'server.js': LISTENS, ...files }, on)
  const BOTH = machine(['20.20.2', '22.11.0'])

  test.each([
    ['.nvmrc', 'v22\n'],
    ['.node-version', '22.11.0'],
    ['.tool-versions', 'nodejs 22.11.0\n'],
    ['package.json', { ...START, engines: { node: '>=22' } }],
    ['package.json', { ...START, volta: { node: '22.11.0' } }],
  ])('that %s (%j) asks for comes before that of the machine on PATH', async (file, content) => {
    const found = await of({ [file]: content }, BOTH)
    expect(found.path).toEqual(['node_modules/.bin', '/opt/node-22.11.0/bin'])
    expect(found.tools).toMatchObject([{ name: 'node', found: '22.11.0', wantedBy: file }])
  })

  test('is the nearest, with a warning, where nothing fits a pin', async () => {
    const found = await of({ '.nvmrc': '18' }, BOTH)
    expect(found.warnings).toEqual(['.nvmrc asks for Node.js 18; 20.20.2 is the nearest here.'])
  })

  test('that is missing is a problem only with engine-strict', async () => {
    const asked = { 'package.json': { ...START, engines: { node: '^18' } } }
    expect((await of(asked, BOTH)).problem).toBeNull()
    const { problem } = await of({ ...asked, '.npmrc': 'engine-strict=true\n' }, BOTH)
    expect(String(problem)).toContain(
      'This app needs Node.js ^18 (package.json), and the server has 20.20.2, 22.11.0',
    )
  })

  test('that a dependency asks for is taken before Bun', async () => {
    const files = {
      'package.json': { ...START, dependencies: { tool: '1' } },
      'package-lock.json': { packages: { 'node_modules/tool': { engines: { node: '>=22' } } } },
    }
    expect(await of(files, BOTH)).toMatchObject({ path: ['node_modules/.bin', '/opt/node-22.11.0/bin'] })
    expect((await of(files, machine())).kind).toContain('by Bun since Node.js here is too old')
  })

  test.each([
    ['react-scripts', '4.0.3', true],
    ['react-scripts', '^5.0.1', false],
    ['webpack', '^4.46.0', true],
    ['@vue/cli-service', '~4.5.0', true],
  ])('%s %s gets the option that it needs under OpenSSL 3: %p', async (name, version, needs) => {
    const pkg = { scripts: { build: `${name} build` }, dependencies: { [name]: version } }
    const found = await of({ 'package.json': pkg, 'index.html': '' }, machine())
    expect(found.variables).toEqual({
      npm_config_nodedir: '/opt/node-20.20.2',
      ...(needs ? { NODE_OPTIONS: '--openssl-legacy-provider' } : {}),
    })
    if (needs) expect(found.evidence.map(({ says }) => says).join()).toContain(`"${name}": "${version}"`)
    const older = await of({ 'package.json': pkg, 'index.html': '' }, machine(['16.20.0']))
    expect(older.variables).toEqual({ npm_config_nodedir: '/opt/node-16.20.0' })
  })
})

describe('beside another language', () => {
  const DJANGO = {
    'manage.py':
      "import os\nos.environ.setdefault('DJANGO_SETTINGS_MODULE', 'site.settings')\nimport django\n",
    'requirements.txt': 'django\n',
  }

  test.each([
    ['scripts for the styles', { scripts: { dev: 'tailwindcss -w', build: 'tailwindcss -o a.css' } }],
    ['a start that only compiles', { scripts: { start: 'webpack --watch', build: 'tailwindcss -o a.css' } }],
    ['Vite', { scripts: { dev: 'vite', build: 'vite build' }, devDependencies: { vite: '7' } }],
  ])('%s are built for it', async (_, pkg) => {
    const found = await detect({ ...DJANGO, 'package.json': pkg })
    expect(found.kind).toBe('Python (Django)')
    expect(found.build).toContain('bun run build')
  })

  test('a script file of its pages is not an app', async () => {
    const found = await detect({
      'requirements.txt': 'flask\n',
      'app.py': 'from flask import Flask\napp = Flask(__name__)\n',
      'index.js': 'document.title = 1\n',
    })
    expect(found.kind).toBe('Python (Flask)')
  })
})

describe('a package that is not a server is refused with what it is:', () => {
  test.each([
    [
      { main: 'main.js', scripts: { start: 'electron .' }, devDependencies: { electron: '30' } },
      'a desktop app (Electron)',
    ],
    [{ engines: { vscode: '^1.90' }, main: 'out/extension.js' }, 'an extension of Visual Studio Code'],
    [
      { scripts: { start: 'expo start' }, dependencies: { expo: '51', 'react-native': '0.74' } },
      'a mobile app',
    ],
    [{ bin: { tool: 'cli.js' } }, 'a command-line program ("bin" in package.json)'],
    [{ exports: './lib/a.js', scripts: { build: 'tsc' } }, 'a library for other packages'],
  ])('%j', async (pkg, what) => {
    const { problem } = await detect({ 'package.json': pkg, 'main.js': '' })
    expect(String(problem)).toContain(`This is ${what}`)
    expect(String(problem)).toContain('berth.json')
  })
})

describe('a framework', () => {
  test.each([
    [
      { '@nestjs/core': '^11' },
      { start: 'nest start', 'start:prod': 'node dist/main' },
      'NestJS',
      'bun run start:prod',
    ],
    [{ '@adonisjs/core': '^6' }, {}, 'AdonisJS', 'cd build && node server.js'],
    [{ '@solidjs/start': '^1' }, {}, 'SolidStart', 'node .output/server/index.mjs'],
    [{ '@strapi/strapi': '^5' }, { start: 'strapi start' }, 'Strapi', 'bun run start'],
    [{ nuxt: '^2.15' }, {}, 'Nuxt', 'bun run nuxt start --port $PORT --hostname $HOST'],
    [{ hexo: '^7' }, {}, 'Hexo', 'public/'],
    [{ '@11ty/eleventy': '^3' }, { start: 'npx @11ty/eleventy --serve' }, 'Eleventy', '_site/'],
    [{ 'ember-cli': '^5' }, { start: 'ember serve' }, 'Ember', 'dist/*'],
    [{ '@rsbuild/core': '^1' }, {}, 'Rsbuild', 'dist/*'],
    [{ expo: '51', 'react-native': '0.74', 'react-native-web': '0.19' }, {}, 'Expo (web)', 'dist/*'],
    [{ storybook: '^8' }, { build: 'tsc' }, 'Storybook', 'storybook-static/'],
  ])('%j is known by its package', async (dependencies, scripts, kind, start) => {
    const found = await detect({ 'package.json': { dependencies, scripts } })
    expect(found.kind).toBe(kind)
    expect(
      found.start?.kind === 'files'
        ? `${found.start.folder}/${found.start.fallback ? '*' : ''}`
        : commandOf(found),
    ).toBe(start)
    const [first] = found.evidence
    expect(first?.says).toContain(Object.keys(dependencies)[0] ?? '')
  })

  test.each([
    ['adapter()', '', 'node build'],
    ["adapter({ envPrefix: 'MY_' })", 'MY_', 'MY_PORT=$PORT MY_HOST=$HOST node build'],
  ])('SvelteKit with adapter-node as %s knows its address', async (adapter, prefix, command) => {
    const files = {
      'package.json': { scripts: { build: 'vite build' }, devDependencies: { '@sveltejs/kit': '2' } },
      'svelte.config.js': `import adapter from '@sveltejs/adapter-node'\nexport default { kit: { adapter: ${adapter} } }`,
    }
    const found = await detect(files)
    expect(commandOf(found)).toBe(command)
    const own = await detect({
      ...files,
      'package.json': {
        scripts: { build: 'vite build', start: 'node build' },
        devDependencies: { '@sveltejs/kit': '2' },
      },
    })
    for (const { variables } of [found, own]) {
      expect(variables).toMatchObject({
        [`${prefix}PROTOCOL_HEADER`]: 'x-forwarded-proto',
        [`${prefix}HOST_HEADER`]: 'x-forwarded-host',
      })
    }
  })
})

test('each decision has the line that it rests on', async () => {
  const { evidence } = await detect({
    'package.json':
      '{\n  "packageManager": "npm@10.0.0",\n  "scripts": {\n    "start": "node dist/server.js",\n    "build": "tsc"\n  }\n}',
    'package-lock.json': {},
    'src/server.ts': `import express from 'express'\nconst app = express()\napp.listen(3000)\n`,
  })
  expect(evidence).toEqual([
    { file: 'package.json', line: 4, says: '"start": "node dist/server.js",' },
    { file: 'src/server.ts', line: 3, says: 'app.listen(3000)' },
    { file: 'package.json', line: 2, says: '"packageManager": "npm@10.0.0",' },
    { file: 'package-lock.json', line: null, says: 'exists' },
  ])
})
