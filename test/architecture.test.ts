import { describe, expect, test } from 'bun:test'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { CLIENTS, circles, importsOf, sourceFiles, TEMPLATE_APPS } from '../scripts/import-graph.ts'
import SLOW_FILES from '../scripts/suite/slow-files.json'

const src = join(import.meta.dir, '../src')

/** Places from the top down; a file may import from its own row and from lower ones. */
const ROWS: readonly (readonly string[])[] = [
  ['main.ts'],
  ['cli'],
  // The page that runs in browsers.
  ['dashboard'],
  ['route-client'],
  ['instance'],
  ['testing'],
  ['signin'],
  ['resources'],
  ['agents'],
  ['hosting'],
  ['contract'],
  ['http'],
  ['compute'],
  ['storage'],
  ['config'],
  ['system'],
  ['runtime'],
  ['errors.ts'],
]

/**
 * The doors of rooms: the files that others may import. A door names what others need, and has it or exports it from where
 * it is. There are several where one would load what few need. `main.ts` starts the programs of the executable by themselves.
 */
const DOORS: Readonly<Record<string, readonly string[]>> = {
  compute: [
    // Provisions and starts servers; loads the drivers.
    'compute.ts',
    // A server that runs, and a server's files.
    'sandbox.ts',
    'workspace.ts',
    'emulators/emulators.ts',
    // The tools of servers: the machine's, and berth's own.
    'tools.ts',
    // Processes, and what else a killed berth leaves.
    'processes.ts',
    'remains.ts',
    // Trees of files on this machine.
    'trees.ts',
  ],
  hosting: ['hosting.ts', 'app.ts', 'detection/detect.ts', 'registries/packages.ts', 'sites/no-site.ts'],
  agents: ['agents.ts', 'workbench/workbench.ts', 'scripted/scenarios.ts'],
  signin: ['sign-in.ts', 'routes.ts', 'access/api.ts', 'session/browser-requests.ts'],
  testing: [
    // Fixtures files, the files of a run's report, and archives of requests.
    ...['testing.ts', 'names.ts', 'seed/read.ts', 'report/directory.ts', 'journal/har.ts'],
  ],
  storage: ['data-directory.ts', 'database.ts', 'state.ts', 'cipher.ts', 'files.ts'],
}

const files = sourceFiles(src)
const imports = importsOf(src, files)

/** The row of the longest place that a path lies in; -1 where it lies in none. */
function rowOf(path: string): number {
  const parts = path.split('/')
  for (let length = parts.length; length > 0; length--) {
    const place = parts.slice(0, length).join('/')
    const row = ROWS.findIndex((places) => places.includes(place))
    if (row !== -1) return row
  }
  return -1
}

/** Returns what is loaded with files, at once and not on first use. */
function loadedWith(entries: readonly string[]): Set<string> {
  const next = Map.groupBy(
    imports.filter(({ typeOnly, lazy }) => !typeOnly && !lazy),
    ({ from }) => from,
  )
  const loaded = new Set(entries)
  for (const path of loaded) for (const { to } of next.get(path) ?? []) loaded.add(to)
  return loaded
}

describe('src', () => {
  test('every file has its row in the architecture', () => {
    expect(files.filter((path) => rowOf(path) === -1)).toEqual([])
  })

  test('imports point down', () => {
    const upward = imports
      .filter(({ to }) => !to.startsWith('..'))
      .filter(({ from, to }) => rowOf(to) < rowOf(from))
      .map(({ from, to }) => `${from} → ${to}`)
    expect(upward).toEqual([])
  })

  test('rooms are entered by their doors', () => {
    const others = imports.flatMap(({ from, to }) => {
      const [room = ''] = to.split('/')
      const doors = DOORS[room]?.map((door) => `${room}/${door}`)
      const isOutside = !from.startsWith(`${room}/`) && from !== 'main.ts'
      return doors && isOutside && !doors.includes(to) ? [`${from} → ${to}`] : []
    })
    expect(others).toEqual([])
    const doors = Object.entries(DOORS).flatMap(([room, names]) => names.map((name) => `${room}/${name}`))
    expect(
      doors.filter(
        (door) => !imports.some(({ to, from }) => to === door && !from.startsWith(`${door.split('/')[0]}/`)),
      ),
    ).toEqual([])
  })

  test('the first comment of a room names files and directories that exist', () => {
    const doors = [
      ...[
        'agents/agents.ts',
        'cli/index.ts',
        'compute/compute.ts',
        'config/config.ts',
        'contract/operation.ts',
      ],
      ...['hosting/hosting.ts', 'http/listener.ts', 'instance/start.ts', 'resources/openapi.ts'],
      ...['route-client/client.ts', 'runtime/service.ts', 'signin/sign-in.ts', 'storage/data-directory.ts'],
      ...['system/system.ts', 'testing/testing.ts'],
    ]
    const missing = doors.flatMap((door) => {
      const [comment = ''] = readFileSync(join(src, door), 'utf8').split('*/')
      const named = [...comment.matchAll(/`([\w./-]+(?:\.tsx?|\/))`|\b((?:src|docs|fixtures)\/[\w./-]*\w)/g)]
      const names = named.map(([, inRoom, fromTop]) => inRoom ?? fromTop ?? '')
      const room = door.split('/')[0] ?? ''
      // `model.ts` and the like are in every noun.
      const places = [join(src, room), join(src, '..'), join(src, 'resources/servers')]
      const lost = names.filter((name) => !places.some((place) => existsSync(join(place, name))))
      return names.length === 0 ? [`${door}: no comment`] : lost.map((name) => `${door}: ${name}`)
    })
    expect(missing).toEqual([])
  })

  test('every door begins with a comment that says what it is for', () => {
    const doors = Object.entries(DOORS).flatMap(([room, names]) => names.map((name) => `${room}/${name}`))
    expect(doors.filter((door) => !readFileSync(join(src, door), 'utf8').startsWith('/**'))).toEqual([])
  })

  test('nothing of src imports from the clients, which are packages of their own', () => {
    expect(imports.filter(({ to }) => to.startsWith(CLIENTS))).toEqual([])
  })

  test('no imports run in a circle, those of types and those on first use included', () => {
    expect(circles(imports)).toEqual([])
  })

  test('no module has state: no variable, no set of objects, nothing that counts or caches', () => {
    const state = files.flatMap((path) =>
      [
        ...code(path).matchAll(
          /^(?:export )?(?:let |const \w+ = new Weak(?:Map|Set)\b|const \w+ = once\().*/gm,
        ),
      ].map(([line]) => `${path}: ${line}`),
    )
    expect(state).toEqual([])
  })

  test('a start loads nothing that is loaded on first use', () => {
    const loaded = loadedWith(['cli/index.ts', 'cli/instances/serve.ts', 'instance/start.ts'])
    const onFirstUse = [
      ...['hosting/hosting.ts', 'resources/projects/service.ts', 'resources/deployments/service.ts'],
      ...['resources/tasks/service.ts', 'resources/builds/service.ts', 'resources/webhooks/service.ts'],
      ...['resources/webhooks/worker.ts', 'signin/session/sessions.ts', 'agents/scripted/agent.ts'],
      ...['testing/api/app.ts', 'testing/faults/gate.ts', 'testing/seed/apply/apply.ts'],
      ...['resources/projects/table.ts', 'resources/deployments/table.ts', 'resources/tasks/table.ts'],
      ...['resources/builds/table.ts', 'resources/accounts/model.ts', 'testing/faults/fault.ts'],
      ...['compute/local/sandbox.ts', 'compute/sandboxd/client.ts', 'signin/oauth/client-metadata.ts'],
    ]
    expect(onFirstUse.filter((path) => !files.includes(path))).toEqual([])
    const routes = files.filter((path) => path.endsWith('/routes.ts'))
    expect([...onFirstUse, ...routes].filter((path) => loaded.has(path))).toEqual([])
  })

  // Each of them takes longer to load than a short command takes for everything else.
  test('a start and the command line load no module of Node.js that brings streams', () => {
    const begun = loadedWith([
      'cli/index.ts',
      'cli/instances/serve.ts',
      'instance/start.ts',
      'cli/commands/index.ts',
    ])
    const heavy = /^import (?!type\b).* from 'node:(?:crypto|https?|net|readline|stream|tls|tty|zlib)\b.*/gm
    const loaders = [...begun].flatMap((path) =>
      [...(code(path).match(heavy) ?? [])].map((line) => `${path}: ${line}`),
    )
    expect(loaders).toEqual([])
  })

  test('nothing loads the code of a template', () => {
    expect(imports.filter(({ to }) => to.startsWith(TEMPLATE_APPS))).toEqual([])
  })

  test('only runtime/process-environment.ts reads the environment', () => {
    const readers = files.filter((path) => /\bprocess\.env\b|\bBun\.env\b/.test(code(path)))
    expect(readers).toEqual(['runtime/process-environment.ts'])
  })

  test('time and randomness come from runtime/ alone', () => {
    const readers = files.filter((path) =>
      /\bDate\.now\(|\bnew Date\(\)|Math\.random\(|randomUUID\(/.test(code(path)),
    )
    // A browser has no other clock.
    expect(readers.filter((path) => !/^(?:runtime|dashboard)\//.test(path))).toEqual([])
  })

  test('only system/ and what needs Linux as a whole name what one system has', () => {
    const linux = ['bubblewrap/', 'landlock/', 'limits/', 'local/network/'].map((place) => `compute/${place}`)
    const named = files.filter((path) =>
      /\/proc\b|\/cgroup|cgroup[2.]|\bdlopen\(|\bopenLibc\(/.test(code(path)),
    )
    expect(named.filter((path) => !['system/', ...linux].some((place) => path.startsWith(place)))).toEqual([])
    const darwin = imports.filter(
      ({ from, to }) => /^system\/darwin\//.test(to) && !from.startsWith('system/'),
    )
    expect(darwin).toEqual([])
  })

  test('a bound names whom it holds off, as docs/threats.md lists them', () => {
    const threats = readFileSync(join(src, '../docs/threats.md'), 'utf8')
    const known = [...threats.matchAll(/^\| `(\w+)` \|/gm)].map(([, key]) => key)
    const bound =
      /^ *(?:export |static |readonly |const |#)+(?:(?:MAX|MOST|LARGEST|LONGEST)\w*|\w+_(?:MAX|MOST|LIMIT))(?<!_MS)\b[^(]*=/
    const wrong = files.flatMap((path) => {
      let key: string | undefined
      return readFileSync(join(src, path), 'utf8')
        .split('\n')
        .flatMap((line) => {
          // A bound shares the comment of the one right before it.
          if (/^ *\/\*\*/.test(line) || line.trim() === '') key = undefined
          key = /@bound (\w+)/.exec(line)?.[1] ?? key
          return bound.test(line) && !known.includes(key) ? [`${path}: ${line.trim()}`] : []
        })
    })
    expect(wrong).toEqual([])
  })

  test('no file is longer than 600 lines', () => {
    const long = files.filter((path) => readFileSync(join(src, path), 'utf8').split('\n').length > 600)
    expect(long).toEqual([])
  })
})

test('every test file that is known as slow is there', () => {
  const missing = Object.keys(SLOW_FILES).filter((path) => !existsSync(join(src, '..', path)))
  expect(missing).toEqual([])
})

/** A file's text without its comments. */
function code(path: string): string {
  return readFileSync(join(src, path), 'utf8').replace(/\/\*[\s\S]*?\*\/|\/\/.*$/gm, '')
}
