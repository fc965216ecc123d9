import { describe, expect, test } from 'bun:test'
import { mkdirSync, mkdtempSync, readdirSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { LocalWorkspace } from '../../../src/compute/local/workspace.ts'
import {
  AppError,
  type AppPlan,
  describePlan,
  missingVariables,
  NoAppFound,
} from '../../../src/hosting/app-runtime/plan.ts'
import { planApp } from '../../../src/hosting/detection/detect.ts'
import type { Machine } from '../../../src/hosting/detection/machine.ts'

const FIXTURES = join(import.meta.dir, '../../../fixtures/apps')

const NPM = 'npm ci --no-audit --no-fund'
const LEAN_NPM = 'npm ci --no-audit --no-fund --omit=dev'
const VENV =
  "{ .venv/bin/python --version 2>/dev/null | grep -qF ' 3.11.' || python3 -m venv --clear .venv || uv venv --clear --seed --python python3 .venv; } && "
const PIP = `${VENV}.venv/bin/python -m pip install --no-input`

/** A machine with these tools. */
const having = (...names: string[]): Machine => ({
  has: async (name) => names.includes(name),
  toolchains: async (tool) => {
    const version = tool === 'node' ? '20.20.2' : '3.11.2'
    return names.includes(tool)
      ? [{ tool, version, path: `/usr/bin/${tool}`, bin: '/usr/bin', isDefault: true, source: 'system' }]
      : []
  },
  check: async () => ({ works: true, version: null }),
  memoryBytes: null,
})

const USUAL = having('npm', 'node', 'pnpm', 'yarn', 'python', 'go', 'cargo', 'deno')

const plan = (directory: string, machine = USUAL): Promise<AppPlan> =>
  planApp({ workspace: new LocalWorkspace(FIXTURES), directory, machine })

/** `$ COMMAND`, or `FOLDER/`, with a `*` where one page answers all. */
function startOf({ start }: AppPlan): string {
  if (start.kind === 'command') return `$ ${start.command}`
  if (start.kind === 'workers') return 'workers'
  return `${start.folder}/${start.fallback ? '*' : ''}`
}

/** Folder, kind, install, build, start. */
type Row = [folder: string, kind: string, install: string | null, build: string | null, start: string]

const ROWS: Row[] = [
  ['vite-react', 'Vite (single-page app)', NPM, 'bun run build', 'dist/*'],
  ['vite-vue-outdir', 'Vite (single-page app)', 'bun install --no-save', 'bun run build', 'public-out/*'],
  ['vite-with-server', 'Node.js (bun)', 'bun install --no-save', 'bun run build', '$ bun run start'],
  ['vite-ssr-dev-only', 'Node.js (bun)', 'bun install --no-save', 'bun run build', '$ node server.js'],
  ['astro-static', 'Astro (static)', 'pnpm install --frozen-lockfile', 'bun run build', 'dist/'],
  ['astro-node', 'Astro', 'bun install --no-save', 'bun run build', '$ node ./dist/server/entry.mjs'],
  ['cra', 'Create React App', 'yarn install --non-interactive --frozen-lockfile', 'bun run build', 'build/*'],
  ['angular', 'Angular (single-page app)', 'bun install --no-save', 'bun run build', 'dist/portal/browser/*'],
  ['angular-16', 'Angular (single-page app)', 'bun install --no-save', 'bun run build', 'dist/portal/*'],
  ['next', 'Next.js', NPM, 'bun run build', '$ bun run next start -p $PORT -H $HOST'],
  ['next-export', 'Next.js (static)', 'bun install --no-save', 'bun run build', 'out/'],
  ['next-custom-server', 'Node.js (bun)', 'bun install --no-save', 'bun run build', '$ bun run start'],
  ['remix', 'Remix', 'bun install --no-save', 'bun run build', '$ bun run start'],
  [
    'react-router-spa',
    'React Router (single-page app)',
    'bun install --no-save',
    'bun run build',
    'build/client/*',
  ],
  ['sveltekit-node', 'SvelteKit', 'bun install --no-save', 'bun run build', '$ node build'],
  ['sveltekit-static', 'SvelteKit (static)', 'bun install --no-save', 'bun run build', 'build/*'],
  [
    'sveltekit-auto',
    'SvelteKit',
    'bun install --no-save',
    'bun run build',
    '$ bun run vite preview --port $PORT --strictPort --host $HOST',
  ],
  ['nuxt', 'Nuxt', 'bun install --no-save', 'bun run build', '$ node .output/server/index.mjs'],
  ['express', 'Node.js (npm)', LEAN_NPM, null, '$ bun run start'],
  ['express-no-start', 'Node.js (npm)', NPM, null, '$ node lib/server.js'],
  ['elysia', 'Bun', 'bun install --omit=dev --frozen-lockfile', null, '$ bun src/index.ts'],
  ['hono-node', 'Node.js (bun)', 'bun install --no-save', 'bun run build', '$ bun run start'],
  ['fastify-usual-file', 'Node.js (bun)', 'bun install --no-save', null, '$ node app.mjs'],
  ['no-dependencies', 'Node.js (bun)', null, null, '$ bun run start'],
  [
    'dev-script-only',
    'Node.js (bun)',
    'bun install --no-save',
    null,
    '$ NODE_ENV=development bun run dev --port $PORT --ip $HOST',
  ],
  ['tooling-and-page', 'static files', null, null, '/'],
  ['workspaces-start', 'Node.js (npm)', NPM, null, '$ npm run start'],
  ['bun-file', 'Bun', null, null, '$ bun server.ts'],
  ['node-file', 'Node.js', null, null, '$ node server.js'],
  ['static', 'static files', null, null, '/'],
  ['static-public', 'static files', null, null, 'public/'],
  ['staticfile', 'static files', null, null, 'site/*'],
  [
    'flask',
    'Python (Flask)',
    `${PIP} -r requirements.txt`,
    null,
    `$ python -m flask --app app:app run --host $HOST --port $PORT`,
  ],
  [
    'flask-gunicorn',
    'Python (Flask)',
    `${PIP} -r requirements.txt`,
    null,
    `$ gunicorn --bind $HOST:$PORT 'wsgi:create_app()'`,
  ],
  [
    'fastapi',
    'Python (FastAPI)',
    `${PIP} 'fastapi>=0.110' uvicorn websockets`,
    null,
    `$ uvicorn app.main:api --host $HOST --port $PORT`,
  ],
  [
    'django',
    'Python (Django)',
    `${PIP} -r requirements.txt`,
    null,
    `$ python manage.py migrate --noinput && exec python manage.py runserver --noreload $HOST:$PORT`,
  ],
  [
    'poetry',
    'Python (Starlette)',
    `${VENV}POETRY_VIRTUALENVS_IN_PROJECT=1 poetry install --no-interaction --no-root && .venv/bin/python -m pip install --no-input websockets`,
    null,
    `$ uvicorn main:app --host $HOST --port $PORT`,
  ],
  ['python-plain', 'Python', null, null, '$ python3 -u main.py'],
  ['go', 'Go', null, 'go build -o bin/ ./cmd/server ./cmd/seed', '$ ./bin/server'],
  ['rust', 'Rust', null, 'cargo build --release --bins', '$ ./target/release/api'],
  ['deno', 'Deno', 'deno install', null, '$ DENO_SERVE_ADDRESS="tcp:$HOST:$PORT" deno task start'],
  ['procfile', 'Python', `${PIP} -r requirements.txt`, null, '$ gunicorn app:app --bind 0.0.0.0:$PORT'],
  ['manifest', 'Node.js (bun)', 'bun install --no-save', null, '$ next-start --port $PORT'],
  ['manifest-static', 'static files', null, null, 'site/*'],
  ['manifest-env-only', 'Bun', null, null, '$ bun server.ts'],
  ['variables', 'Bun', null, null, '$ bun server.ts'],
  ['procfile-worker', 'worker', null, null, 'workers'],
]

/** Folders whose app cannot be told, and what is said about it. */
const REFUSED: Array<[folder: string, said: RegExp]> = [
  ['vite-and-api', /"dev" runs several programs.*berth\.json with a "start"/],
  ['workspaces', /several packages \(apps\/\*, packages\/\*\).*no script "start"/],
  ['no-way-to-start', /package\.json has no script "start".*berth\.json/],
  ['python-no-entry', /requirements\.txt, but no file, object or command.*berth\.json/],
]

describe('an app is found out from its files alone', () => {
  test('every fixture has its row', () => {
    const rows = [...ROWS, ...REFUSED].map(([folder]) => folder)
    expect(rows.sort()).toEqual(readdirSync(FIXTURES).sort())
  })

  test.each(ROWS)('%s: %s', async (folder, kind, install, build, start) => {
    const found = await plan(folder)
    expect({ ...found, start: startOf(found) }).toMatchObject({ kind, install, build, start })
  })

  test.each(REFUSED)('%s is refused with the reason and what to do', async (folder, said) => {
    const error = await plan(folder).catch((error: unknown) => error)
    expect(error).toBeInstanceOf(NoAppFound)
    expect(String(error)).toMatch(said)
  })

  test('a path that begins with /workspace/ means the same', async () => {
    expect(await plan('/workspace/express/')).toEqual(await plan('express'))
  })
})

describe('the tools of the machine', () => {
  test.each(['express', 'cra', 'astro-static'])(
    '%s is installed by Bun where its manager is missing',
    async (folder) => {
      expect((await plan(folder, having())).install).toMatch(/^bun install (?:--omit=dev )?--no-save$/)
    },
  )

  test.each([
    ['flask', 'Python'],
    ['python-plain', 'Python'],
    ['go', 'Go'],
    ['rust', 'Rust'],
    ['deno', 'Deno'],
  ])('%s without %s is refused by its name, with the remedy', async (folder, tool) => {
    const error = await plan(folder, having()).catch((error: unknown) => error)
    expect(error).toBeInstanceOf(AppError)
    expect(String(error)).toMatch(
      new RegExp(`This app needs ${tool}(?: [\\d.]+ \\(\\S+\\))?, which is not installed`),
    )
    expect(String(error)).toMatch(/Install .*restart berth/)
  })
})

describe('berth.json', () => {
  test('comes before all else, and what it leaves open is found out', async () => {
    const found = await plan('manifest')
    expect(found).toMatchObject({
      health: '/healthz',
      watch: true,
      build: null,
      install: 'bun install --no-save',
    })
    expect(found.start).toMatchObject({ kind: 'command', port: 4010 })
    expect(missingVariables(found, new Set())).toEqual(['API_KEY'])
  })

  test.each([
    ['{"start": "a"', 'line 1, column 14: expected "," or "}", got the end of the line'],
    ['{\n  "start": "a",\n  "port": 80,\n}', 'line 4, column 1: expected a name in double quotes, got "}"'],
    ["{\n\n'start': 1}", 'line 3, column 1: expected a name in double quotes'],
    ['{"start": nope}', 'line 1, column 11: expected a value, got "nope}"'],
    [
      '[]',
      'berth.json, line 1, column 1: expected an object with install, build, start, static, port, health, timeout, kind, workers, watch and env, got []',
    ],
    [
      '{"strat": "a"}',
      'line 1, column 2: "strat" is not a known field; known are install, build, start, static, port, health, timeout, kind, workers, watch, env. Did you mean start?',
    ],
    ['{"start": ""}', '"start": expected a shell command, got ""'],
    ['{"build": 5}', '"build": expected a shell command, or null for none, got 5'],
    ['{"port": 70000}', '"port": expected a port, 1 to 65535, got 70000'],
    ['{"port": "80"}', '"port": expected a port, 1 to 65535, got "80"'],
    ['{"health": "healthz"}', '"health": expected a path that begins with "/"'],
    ['{"health": "/a b\\r\\nX: y"}', '"health": expected a path that begins with "/"'],
    ['{"timeout": 601}', '"timeout": expected a whole number of seconds, 1 to 600, got 601'],
    ['{"timeout": 0.5}', '"timeout": expected a whole number of seconds, 1 to 600, got 0.5'],
    ['{"kind": "cron"}', '"kind": expected "worker", got "cron"'],
    ['{"workers": {"a b": "x"}}', '"workers.a b"'],
    ['{"workers": {"a": ""}}', '"workers.a": expected a shell command, got ""'],
    ['{"workers": ["a"]}', '"workers": expected at most 20 shell commands by name'],
    ['{"kind": "worker", "start": "a", "port": 80}', '"kind": "worker" and "port" exclude each other'],
    ['{"kind": "worker", "static": {}}', '"static" and "kind" exclude each other'],
    [
      '{"kind": "worker", "start": "a", "workers": {"worker": "b"}}',
      '"workers" cannot have one of that name',
    ],
    ['{"kind": "worker"}', 'Nothing here says how the worker starts'],
    ['{"watch": 1}', '"watch": expected true or false, got 1'],
    [
      '{"env": {"A-B": {}}}',
      '"env.A-B": expected a name of letters, digits and "_" that does not begin with a digit.',
    ],
    ['{"env": {"A": "x"}}', '"env.A": expected an object with required, description and default, got "x"'],
    [
      '{"env": {"A": {"defualt": "x"}}}',
      '"env.A.defualt" is not a known field; known are required, description, default. Did you mean default?',
    ],
    ['{"env": {"A": {"default": 1}}}', '"env.A.default": expected a string without NUL, got 1'],
    ['{"static": {"folder": "../.."}}', '"static.folder": expected a directory inside the app'],
    ['{"env": {"1A": {}}}', '"env.1A": expected a name of letters, digits and "_" that does not begin with'],
    [
      '{\n  "port": 0,\n  "env": {\n    "A": {"required": 1}\n  },\n  "stat": {}\n}',
      'line 2, column 11: "port": expected a port, 1 to 65535, got 0. Line 4, column 23: "env.A.required": expected true or false, got 1. Line 6, column 3: "stat" is not a known field',
    ],
    ['{"static": {}, "start": "a"}', '"static" and "start" exclude each other'],
    ['{"constructor": {}}', '"constructor" is not a known field'],
  ])('%s is refused by file, field and what was expected', async (text, said) => {
    using folder = new Folder({ 'berth.json': text, 'index.html': '' })
    const error = await folder.plan().catch((error: unknown) => error)
    expect(error).toBeInstanceOf(AppError)
    expect(String(error)).toContain('berth.json')
    expect(String(error)).toContain(said)
  })

  test('with a start needs no other file', async () => {
    using folder = new Folder({ 'berth.json': '{"start": "./serve"}' })
    expect(await folder.plan()).toMatchObject({
      kind: 'command',
      install: null,
      build: null,
      start: { kind: 'command', command: './serve', port: null },
      health: '/',
      watch: false,
      env: {},
    })
  })

  test('with a start and an install of its own asks for no tool', async () => {
    using folder = new Folder({
      'berth.json': '{"start": "./serve", "install": "./fetch"}',
      'requirements.txt': 'flask',
    })
    expect(await folder.plan(having())).toMatchObject({ install: './fetch' })
  })
})

test('code below belongs to the list of packages beside it, and what the whole needs is said', async () => {
  using folder = new Folder({
    'compose.yaml': 'services:\n  db:\n    image: postgres:16\n',
    'server/pyproject.toml': '[project]\nname = "server"\nversion = "1"\ndependencies = ["fastapi"]\n',
    'server/app/__init__.py': '',
    'server/app/main.py': 'from fastapi import FastAPI\n\napp = FastAPI()\n',
  })
  const { directory, install, start, warnings } = await folder.plan()
  expect(directory).toBe('server')
  expect(install).toContain('pip install')
  expect(start).toMatchObject({ command: 'uvicorn app.main:app --host $HOST --port $PORT' })
  expect(warnings).toEqual([expect.stringContaining('compose.yaml names PostgreSQL')])
})

test('apps of one directory are named by their starts, in one line with a berth.json that is followed', async () => {
  const main = 'package main\n\nimport "net/http"\n\nfunc main() { http.ListenAndServe(":8080", nil) }\n'
  const servers = {
    'go.mod': 'module example.org/servers\n\ngo 1.20\n',
    ...Object.fromEntries(['blog', 'mail', 'news'].map((name) => [`cmd/${name}/main.go`, main])),
  }
  using folder = new Folder(servers)
  const lines = describePlan(await folder.plan()).filter((line) => line.startsWith('Not started'))
  expect(lines).toEqual([
    expect.stringContaining(
      'Go in the same directory (./bin/mail, ./bin/news), since one app runs. To run ./bin/mail, put this into berth.json: {',
    ),
  ])
  const [, said = ''] = /berth\.json: (.*)$/.exec(lines[0] ?? '') ?? []
  using followed = new Folder({ ...servers, 'berth.json': said })
  expect((await followed.plan()).start).toMatchObject({ command: './bin/mail' })
})

describe('workers', () => {
  const web = { 'web.ts': '' }
  const start = { kind: 'command', command: 'bun web.ts', port: null }

  test('of a Procfile are known by name; other lines are left out, with what starts them', async () => {
    const Procfile =
      'web: bun web.ts\nrelease: echo now\nworker: bun "a b".ts\nclock: c\nscheduler: s\nbeat: b\ncron: r\nqueue: q\nmailworker: m\ntest: t\nworkers: w\n'
    using folder = new Folder({ Procfile, ...web })
    const { workers, leftOut, ...found } = await folder.plan()
    expect(found).toMatchObject({ start, release: 'echo now' })
    const known = {
      worker: 'bun "a b".ts',
      clock: 'c',
      scheduler: 's',
      beat: 'b',
      cron: 'r',
      queue: 'q',
      mailworker: 'm',
    }
    expect(workers).toEqual(known)
    expect(leftOut.map(({ what }) => what)).toEqual(['"test" of the Procfile', '"workers" of the Procfile'])
    const [, said = ''] = /put this into berth\.json: (.*)$/.exec(leftOut[0]?.why ?? '') ?? []
    expect(JSON.parse(said)).toEqual({ workers: { ...known, test: 't' } })
    using followed = new Folder({ Procfile, ...web, 'berth.json': said })
    expect((await followed.plan()).workers).toEqual({ ...known, test: 't' })
  })

  test('of berth.json take the place of the Procfile’s', async () => {
    const Procfile = 'web: bun web.ts\nworker: w\n'
    using folder = new Folder({ Procfile, ...web, 'berth.json': '{"workers": {"mail": "m"}}' })
    const { workers, leftOut } = await folder.plan()
    expect(workers).toEqual({ mail: 'm' })
    expect(leftOut).toMatchObject([{ what: '"worker" of the Procfile' }])
  })

  test.each([
    [
      'a kind of berth.json',
      { 'berth.json': '{"kind": "worker", "start": "bun w.ts"}' },
      { worker: 'bun w.ts' },
    ],
    [
      'a kind of berth.json beside others',
      { 'berth.json': '{"kind": "worker", "start": "bun w.ts", "workers": {"b": "bun b.ts"}}' },
      { worker: 'bun w.ts', b: 'bun b.ts' },
    ],
    [
      'a kind and what is detected',
      { 'berth.json': '{"kind": "worker"}', 'main.ts': '' },
      { worker: 'bun main.ts' },
    ],
    ['a Procfile without web', { Procfile: 'clock: c\nmailworker: m' }, { clock: 'c', mailworker: 'm' }],
  ])('are all of a project by %s', async (_, files, workers) => {
    using folder = new Folder(files)
    expect(await folder.plan()).toMatchObject({ start: { kind: 'workers' }, workers })
  })

  test('are beside an app that is detected without the Procfile', async () => {
    using folder = new Folder({ Procfile: 'worker: w', 'server.js': '' })
    expect(await folder.plan()).toMatchObject({
      start: { command: 'node server.js' },
      workers: { worker: 'w' },
    })
  })
})

describe('a broken file of the app', () => {
  test('is named with the line', async () => {
    using folder = new Folder({ 'package.json': '{\n  "name": "x",\n  "scripts": {,}\n}' })
    expect(folder.plan()).rejects.toThrow(
      'package.json, line 3, column 15: expected a name in double quotes, got ",}"',
    )
  })

  test('that is not a JSON object is refused', async () => {
    using folder = new Folder({ 'package.json': '"x"' })
    expect(folder.plan()).rejects.toThrow('package.json: expected an object.')
  })

  const deep = '['.repeat(2_000_000)
  const nested = `${'['.repeat(65)}${']'.repeat(65)}`

  test.each(['berth.json', 'package.json', 'composer.json', 'deno.json', 'app.json'])(
    'nested without end, %s, is given up at once and takes no memory',
    async (name) => {
      using folder = new Folder({ [name]: deep, 'index.html': '' })
      const before = process.memoryUsage.rss()
      const result = await folder.plan().catch((error: unknown) => String(error))
      expect(process.memoryUsage.rss() - before).toBeLessThan(64 * 2 ** 20)
      if (typeof result === 'string') {
        expect(result).toContain(`${name}, line 1, column 65: nested too deeply, expected at most 64 levels.`)
      }
    },
  )

  // Each takes Bun's parser between 0.5 and 40 seconds, or hundreds of megabytes.
  test.each([
    ['keys', Array.from({ length: 100_000 }, (_, n) => `k${n} = 1\n`).join('')],
    ['tables', Array.from({ length: 100_000 }, (_, n) => `[k${n}]\n`).join('')],
    ['dots', `a${'.a'.repeat(1_000_000)} = 1`],
    ['keys in one line', `a = {${Array.from({ length: 100_000 }, (_, n) => `k${n}=1`).join(',')}}`],
  ])(
    'of TOML with %s without end is given up at once and takes no memory',
    async (_, text) => {
      using folder = new Folder({ 'pyproject.toml': text, 'main.py': '', 'requirements.txt': '' })
      const before = process.memoryUsage.rss()
      const begun = performance.now()
      const error = String(await folder.plan().catch((error: unknown) => error))
      expect(error).toContain('pyproject.toml is not read: it has more than 5000 keys')
      expect(performance.now() - begun).toBeLessThan(500)
      expect(process.memoryUsage.rss() - before).toBeLessThan(64 * 2 ** 20)
    },
    120_000,
  )

  test('nested deeply is refused even if it is valid JSON', async () => {
    using folder = new Folder({ 'package.json': `{"name": "[[[\\"[", "x": ${nested}}` })
    expect(folder.plan()).rejects.toThrow('package.json, line 1, column 88: nested too deeply')
  })

  test('of many values is explained without holding the place of each', async () => {
    using folder = new Folder({ 'berth.json': `{"port": [${'0,'.repeat(2_000_000)}0]}` })
    const limit = 200 * 2 ** 20
    let grown = limit
    // What earlier tests have left may grow meanwhile, but not each time.
    for (let attempt = 0; attempt < 3 && grown >= limit; attempt += 1) {
      Bun.gc(true)
      const before = process.memoryUsage.rss()
      const error = String(await folder.plan().catch((error: unknown) => error))
      expect(error).toContain('line 1, column 10: "port": expected a port, 1 to 65535')
      grown = process.memoryUsage.rss() - before
    }
    expect(grown).toBeLessThan(limit)
  })

  test('with a very long text is explained at the place of its mistake', async () => {
    const long = 'x'.repeat(4_000_000)
    using folder = new Folder({ 'package.json': `{"name": "${long}" 1}` })
    expect(folder.plan()).rejects.toThrow(`package.json, line 1, column ${long.length + 13}: expected ","`)
  })

  test('of others’ formats that only looks like it says nothing', async () => {
    using folder = new Folder({ 'app.json': '{"expo": {', 'index.html': '' })
    expect((await folder.plan()).env).toEqual({})
  })

  test('a link out of the workspace is not a file of the app', async () => {
    using folder = new Folder({ 'index.html': '' })
    Bun.spawnSync(['ln', '-s', '/etc/passwd', join(folder.path, 'app/package.json')])
    expect((await folder.plan()).kind).toBe('static files')
  })
})

describe('an app of any size is understood', () => {
  const long = '-bun '.repeat(1_000)
  const scripts = Object.fromEntries(Array.from({ length: 800 }, (_, n) => [`s${n}`, long]))
  const several = { dev: 'concurrently "vite" "run"', ...scripts }

  // Each took tens of seconds, in which berth did nothing else.
  test.each([
    ['scripts of many runtimes and options', { scripts: several, devDependencies: { vite: '1' } }],
    ['a range of versions', { scripts: { start: 'node .' }, engines: { node: '<1 '.repeat(1_300_000) } }],
  ])(
    'in a bounded time, whatever its %s',
    async (_, manifest) => {
      using folder = new Folder({ 'package.json': JSON.stringify(manifest), 'index.html': '' })
      const begun = performance.now()
      expect((await folder.plan()).start).toBeDefined()
      expect(performance.now() - begun).toBeLessThan(3_000)
    },
    300_000,
  )

  test('without its files of code in memory', async () => {
    using folder = new Folder({ 'go.mod': 'module x', 'main.go': 'package main' })
    const paths = Array.from({ length: 150 }, (_, n) => join(folder.path, 'app', `f${n}.go`))
    for (const path of paths) {
      writeFileSync(path, '')
      truncateSync(path, 4 * 2 ** 20)
    }
    Bun.gc(true)
    const before = process.memoryUsage.rss()
    expect((await folder.plan()).start).toEqual({ kind: 'command', command: './bin/x', port: null })
    expect(process.memoryUsage.rss() - before).toBeLessThan(200 * 2 ** 20)
  })
})

describe('a script is run by Bun', () => {
  const commandOf = async (code: string) => {
    using folder = new Folder({
      'server.js': `${code}\nrequire('node:http').createServer().listen(process.env.PORT)`,
    })
    const { start } = await folder.plan()
    return start.kind === 'command' ? start.command : null
  }

  test.each([
    ...["import { serve } from 'bun'", "import('bun:sqlite')", "const { Database } = require('bun:sqlite')"],
    ...['Bun.serve({})', "if (typeof Bun !== 'undefined') use(Bun)", 'globalThis.Bun.serve()'],
    ...["import 'bun'", 'this is ( no JavaScript: Bun.'],
  ])('if it has %j', async (code) => expect(await commandOf(code)).toBe('bun server.js'))

  test.each([
    ...[
      "const tool = 'bun'",
      "console.log('Bun.serve', \"from 'bun'\")",
      '// Bun.serve is faster',
      '/* import "bun" */',
    ],
    ...[
      'const Bun = { serve() {} }; Bun.serve()',
      'const text = `Bun.serve`',
      "run({ packageManager: 'bun' })",
    ],
  ])('but by Node.js if it has only %j', async (code) => expect(await commandOf(code)).toBe('node server.js'))

  test('within a bounded time, whatever its text is', async () => {
    for (const text of ['a<', 'let a;', 'class A{', '(']) {
      const begun = performance.now()
      await commandOf(`Bun;${text.repeat((128 * 1024) / text.length - 60)}`)
      expect(performance.now() - begun).toBeLessThan(5_000)
    }
  })
})

describe('the version of Node.js', () => {
  const app = (engines: object, lock: object = {}) =>
    new Folder({
      'package.json': JSON.stringify({
        scripts: { build: 'tool build', start: 'node server.js' },
        dependencies: { tool: '1' },
        engines,
      }),
      'package-lock.json': JSON.stringify(lock),
    })

  test('that an app wants and the machine has is used', async () => {
    using folder = app(
      { node: '>=18' },
      { packages: { 'node_modules/tool': { engines: { node: '>=20.3' } } } },
    )
    expect(await folder.plan()).toMatchObject({ build: 'bun run build', start: { command: 'bun run start' } })
  })

  test.each([
    [{ node: '>=22.12.0' }, {}],
    [{ node: '^20.21 || ^22' }, {}],
    [{}, { packages: { 'node_modules/tool': { engines: { node: '>=22' } } } }],
  ])('where %j or %j asks for a newer one, Bun runs what Node.js would', async (engines, lock) => {
    using folder = app(engines, lock)
    const { kind, build, start } = await folder.plan()
    expect(kind).toContain('Node.js here is too old')
    expect([build, start]).toEqual([
      'bun --bun run build',
      { kind: 'command', command: 'bun --bun run start', port: null },
    ])
  })

  test('that was forgotten long ago counts for nothing', async () => {
    using folder = app({ node: '14.x' })
    expect(await folder.plan()).toMatchObject({ build: 'bun run build' })
  })
})

describe('variables', () => {
  test('come from berth.json, app.json and the example file, in this order', async () => {
    const { env } = await plan('variables')
    expect(env).toEqual({
      COOKIE: { required: true, description: 'Signs cookies.', default: null, generated: 'hex' },
      DATABASE_URL: {
        required: true,
        description: 'The database, as a URL. Ask the team for it.',
        default: null,
      },
      EMPTY: { required: true, description: null, default: null },
      EXTRA: { required: false, description: null, default: null },
      LOG_LEVEL: { required: false, description: null, default: 'warn' },
      PLACED: { required: false, description: null, default: null },
      QUOTED: { required: false, description: null, default: 'a # b' },
      REGION: { required: false, description: null, default: 'eu' },
      SENTRY_DSN: { required: false, description: 'Sentry (optional)', default: null },
    })
  })

  test('that stand in the file .env of the app are left to it', async () => {
    using folder = new Folder({
      'index.ts': '',
      '.env.example': 'LEVEL=info\nTOKEN=\nOTHER=x\n',
      '.env': 'LEVEL=debug\nTOKEN=mine\n',
    })
    expect((await folder.plan()).env).toEqual({
      LEVEL: { required: false, description: null, default: null },
      OTHER: { required: false, description: null, default: 'x' },
      TOKEN: { required: false, description: null, default: null },
    })
  })

  test('that berth gives are never required', async () => {
    using folder = new Folder({
      'berth.json': '{"start": "x", "env": {"PORT": {}, "HOST": {}, "NODE_ENV": {}, "A": {}}}',
    })
    expect(missingVariables(await folder.plan(), new Set())).toEqual(['A'])
  })

  test('of an example file are not required if it, or the code, has a default', async () => {
    using folder = new Folder({
      '.env.example': 'A=\n# Engine (default: sqlite)\nB=\n# Leave empty for none\nC=\nD=\nE=\nF=\nG=\n',
      'app.py': 'import os\nos.getenv("D", None)\nos.environ["E"]\n',
      'server.js':
        'require("http").createServer().listen(process.env.PORT); process.env.F ?? 1; process.env.G',
    })
    expect(missingVariables(await folder.plan(), new Set())).toEqual(['A', 'E', 'G'])
  })
})

/** A text that is repeated up to a length. */
const repeated = (text: string, characters = 100_000): string => text.repeat(characters / text.length)

describe('a file that is made to be read for long holds nothing up:', () => {
  const MODULE = '{"dependencies": {"vite": "1"}, "devDependencies": {"vite": "1"}, "scripts": '
  const FILES: Readonly<Record<string, Record<string, string>>> = {
    'a quotation that does not end': { 'index.ts': '', '.env.example': `A="${'\\a'.repeat(30)}` },
    'a remark of spaces': { 'index.ts': '', '.env.example': `A="" #${repeated(' ')}` },
    'a Procfile of spaces': { Procfile: `web: a${repeated(' ')}b${repeated(' ')}c` },
    'a Staticfile of empty lines': { Staticfile: repeated('\n') },
    'a module of a long name': { 'go.mod': `module ${repeated('a')} b`, 'main.go': 'package main' },
    'comments that do not end': {
      'package.json': `${MODULE}{"build": "vite build"}}`,
      'vite.config.ts': repeated('/* '),
      'index.html': '',
    },
    'a script of spaces': { 'package.json': `{"scripts": {"start": "node${repeated(' ')}&"}}` },
    'a script of options': {
      'package.json': `${MODULE}{"build": "vite build", "dev": "concurrently a b", "a": "${repeated('node -')}"}}`,
      'index.html': '',
    },
  }

  test.each(Object.entries(FILES))('%s', async (_, files) => {
    using folder = new Folder(files)
    const began = performance.now()
    await folder.plan().catch((error) => {
      if (!(error instanceof AppError) && !(error instanceof NoAppFound)) throw error
    })
    expect(performance.now() - began).toBeLessThan(1_500)
  })
})

test('the image of a Dockerfile says which Python an app is for, where nothing else does', async () => {
  const files = {
    'app.py': 'from flask import Flask\napp = Flask(__name__)\n',
    'requirements.txt': 'flask\n',
  }
  const wished = async (more: Record<string, string>) => {
    using folder = new Folder({ ...files, ...more })
    const { tools } = await folder.plan()
    return tools.map(({ wanted, wantedBy }) => `${wanted} ${wantedBy}`)
  }
  const image = 'FROM docker.io/library/python:3.14.7-slim AS build\n'
  expect(await wished({ 'docker/Dockerfile': image })).toEqual(['3.14.7 docker/Dockerfile'])
  expect(await wished({ Dockerfile: image, '.python-version': '3.11\n' })).toEqual(['3.11 .python-version'])
})

test('an extension of PHP that is missing is a need of a first page and of a database, else a warning', async () => {
  const machine = {
    ...having('php'),
    check: async () => ({ works: true as const, version: '8.3.1', output: '[PHP Modules]\nCore\n' }),
  }
  const image = '<?php imagecreatetruecolor(1, 1);'
  const plans = async (files: Record<string, string>) => {
    using folder = new Folder({ 'index.html': 'x', 'api.php': '<?php', ...files })
    return await folder.plan(machine)
  }
  expect((await plans({ 'stats/chart.php': image })).warnings).toEqual([
    'stats/chart.php calls the PHP extension gd, which is not installed: what uses it fails.',
  ])
  await expect(plans({ 'chart.php': image })).rejects.toThrow('needs the PHP extension gd (chart.php)')
  const database = { 'lib/db.php': '<?php new SQLite3("a");' }
  await expect(plans(database)).rejects.toThrow('needs the PHP extension sqlite3 (lib/db.php)')
})

test('a version with three numbers is a need of a Go that can neither read nor fetch it', async () => {
  const plans = async (version: string, setting: string) => {
    using folder = new Folder({
      'go.mod': `module a\n\ngo ${version}\n`,
      'main.go': 'package main\n\nfunc main() {}\n',
    })
    const [go] = await having('go').toolchains('go')
    return await folder.plan({
      ...having('go'),
      toolchains: async () => (go === undefined ? [] : [{ ...go, version: '1.19.8' }]),
      check: async () => ({ works: true, version: '1.19.8', output: setting }),
    })
  }
  await expect(plans('1.99.0', '\n')).rejects.toThrow('needs Go 1.99.0 (go.mod), and the server has 1.19.8')
  expect((await plans('1.21', '\n')).warnings).toEqual([
    'go.mod asks for Go 1.21; 1.19.8 is the nearest here.',
  ])
  expect((await plans('1.99.0', 'auto\n')).warnings).toEqual([
    'go.mod asks for Go 1.99.0; 1.19.8 is the nearest here.',
  ])
})

test('directories of databases that settings of Django name are made, if the source has none', async () => {
  const started = async (files: Record<string, string>) => {
    using folder = new Folder({
      'manage.py': 'os.environ.setdefault("DJANGO_SETTINGS_MODULE", "site.settings")\nfrom django import x\n',
      'requirements.txt': 'django\n',
      'site/settings.py':
        'X = os.path.join(BASE_DIR, "data", "db.sqlite3")\nY = BASE_DIR / "queue" / "tasks.db"\n',
      ...files,
    })
    return startOf(await folder.plan())
  }
  expect(await started({})).toStartWith('$ mkdir -p data queue && python manage.py migrate')
  const there = { 'data/.gitkeep': '', 'queue/.gitkeep': '' }
  expect(await started(there)).toStartWith('$ python manage.py migrate')
})

test.each([
  [
    'if v := os.getenv("ALLOWED_HOSTS"):\n  ALLOWED_HOSTS = v.split(",")',
    { ALLOWED_HOSTS: '127.0.0.1,localhost,.localhost' },
  ],
  [
    'ALLOWED_HOSTS = os.environ["DJANGO_ALLOWED_HOSTS"].split(" ")',
    { DJANGO_ALLOWED_HOSTS: '127.0.0.1 localhost .localhost' },
  ],
  [
    'ALLOWED_HOSTS = env.list("ALLOWED_HOSTS", default=[])',
    { ALLOWED_HOSTS: '127.0.0.1,localhost,.localhost' },
  ],
  ['ALLOWED_HOSTS = ["shop.example.com"]', {}],
])('settings of Django learn the hosts of berth where they read them: %s', async (text, variables) => {
  using folder = new Folder({
    'manage.py': 'os.environ.setdefault("DJANGO_SETTINGS_MODULE", "site.settings")\nfrom django import x\n',
    'requirements.txt': 'django\n',
    'site/settings.py': `import os\n${text}\n`,
  })
  expect((await folder.plan()).variables).toEqual(variables)
})

test('pages that the source has built are served as they are, and built again only if an app takes them in', async () => {
  const scripts = { build: 'gulp build' }
  const pkg = { 'package.json': JSON.stringify({ scripts, devDependencies: { gulp: '5' } }) }
  const found = async (files: Record<string, string>) => {
    using folder = new Folder({ ...pkg, ...files })
    const plan = await folder.plan()
    return `${startOf(plan)} ${plan.install} ${plan.build}`
  }
  expect(await found({ 'dist/index.html': 'x', 'src/index.html': 'y' })).toBe('dist/ null null')
  expect(await found({ 'index.html': 'x' })).toBe('/ bun install --no-save bun run build')
})

test('a program in Go runs in its own directory if it opens files that are there alone', async () => {
  const listens = 'http.ListenAndServe(":8080", nil)'
  const program = (opens: string) =>
    `package main\nimport "net/http"\nvar page = template.ParseFiles("${opens}")\nfunc main() { ${listens} }\n`
  const started = async (files: Record<string, string>) => {
    using folder = new Folder({ 'go.mod': 'module example.com/a\n', ...files })
    return startOf(await folder.plan())
  }
  const files = { 'web/main.go': program('index.tmpl'), 'web/index.tmpl': '' }
  expect(await started(files)).toBe('$ cd web && exec ../bin/web')
  expect(await started({ ...files, 'index.tmpl': '' })).toBe('$ ./bin/web')
  expect(await started({ 'web/main.go': program('web/index.tmpl'), 'web/index.tmpl': '' })).toBe(
    '$ ./bin/web',
  )
})

test('of two alike the one with the shorter name of a directory comes up', async () => {
  const server = { 'package.json': '{"scripts":{"start":"node ."}}' }
  using folder = new Folder({
    'complete-two/package.json': server['package.json'],
    'complete/package.json': server['package.json'],
  })
  expect((await folder.plan()).directory).toBe('complete')
})

describe('code in Java', () => {
  const main = (text: string) =>
    `package a;\npublic class Step {\n  public static void main(String[] x) {\n    ${text}\n  }\n}\n`
  const listens = main('HttpServer.create(null, 0);')

  test('below a build is of that build, not of a directory above it that has none', async () => {
    const pom = '<project>\n  <packaging>jar</packaging>\n</project>\n'
    using folder = new Folder({
      ...{ 'start/pom.xml': pom, 'start/src/main/java/a/Step.java': main('') },
      ...{ 'finished/pom.xml': pom, 'finished/src/main/java/a/Step.java': listens },
    })
    expect(await folder.plan(having('java', 'mvn'))).toMatchObject({
      ...{ directory: 'finished', kind: 'Java (Maven)' },
    })
  })

  test('in an example is not part of an app in another language', async () => {
    const server = 'require("http").createServer().listen(process.env.PORT)'
    using folder = new Folder({
      ...{ 'package.json': '{"scripts":{"start":"node server.js"}}', 'server.js': server },
      'extra/samples-of-use/Step.java': listens.replace('package a;\n', ''),
    })
    expect(await folder.plan()).toMatchObject({ kind: 'Node.js (bun)', build: null })
  })
})

/** A workspace with an app in `app/`. */
class Folder implements Disposable {
  readonly path = mkdtempSync(join(tmpdir(), 'berth-detect-'))

  constructor(files: Record<string, string>) {
    for (const [path, text] of Object.entries(files)) {
      const full = join(this.path, 'app', path)
      mkdirSync(dirname(full), { recursive: true })
      writeFileSync(full, text)
    }
  }

  plan(machine = USUAL): Promise<AppPlan> {
    return planApp({ workspace: new LocalWorkspace(this.path), directory: 'app', machine })
  }

  [Symbol.dispose](): void {
    rmSync(this.path, { recursive: true, force: true })
  }
}

test('a tool that the image of a server lacks is had by another image', async () => {
  const lacking = { ...having(), has: async () => false }
  await expect(plan('go', lacking)).rejects.toThrow('apt install golang-go')
  await expect(plan('go', { ...lacking, hasImage: true })).rejects.toThrow('--server-image')
})
