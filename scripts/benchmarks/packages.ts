import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { World } from '../../test/hosting/registries/world.ts'
import { type Instance, startInstance } from './instance.ts'
import { median, ms, print, type Row, time, times } from './measure.ts'

/** Packages of the app, in three layers that depend on the next: a registry is asked three times in a row. */
const LAYERS = 3
const PER_LAYER = 10

/** Bytes of each that cannot be compressed. */
const BALLAST = 20_000

/** Milliseconds that the registry takes for each answer, as one across the internet does. */
const LATENCY_MS = 40

/** Servers that install in each way. */
const RUNS = 5

/** What is installed from the real registries, each a program for the server's shell. */
const INSTALLS: readonly {
  tool: string
  program: string
  registry: string
  prepare: string
  install: string
}[] = [
  {
    tool: 'npm',
    program: 'npm',
    registry: 'https://registry.npmjs.org/ms',
    prepare: `echo '{"dependencies":{"express":"4.21.2","lodash":"4.17.21","typescript":"5.6.3"}}' > package.json`,
    install: 'npm install',
  },
  {
    tool: 'pip',
    program: 'python3',
    registry: 'https://pypi.org/simple/six/',
    prepare: 'python3 -m venv .venv',
    install: '.venv/bin/pip install flask==3.0.3 sqlalchemy==2.0.36 requests==2.32.3',
  },
  {
    tool: 'Go',
    program: 'go',
    registry: 'https://proxy.golang.org/golang.org/x/text/@v/list',
    prepare:
      'go mod init example.com/a && go mod edit -require github.com/gin-gonic/gin@v1.10.0 && touch go.sum',
    install: 'go mod download all',
  },
  {
    tool: 'Cargo',
    program: 'cargo',
    registry: 'https://index.crates.io/se/rd/serde',
    prepare: `mkdir src && echo 'fn main() {}' > src/main.rs && printf '[package]\nname = "a"\nversion = "0.1.0"\n[dependencies]\naxum = "0.7"\nserde_json = "1"\n' > Cargo.toml`,
    install: 'cargo fetch',
  },
  {
    tool: 'Maven',
    program: 'mvn',
    registry: 'https://repo.maven.apache.org/maven2/junit/junit/maven-metadata.xml',
    prepare: `printf '%s' '<project><modelVersion>4.0.0</modelVersion><groupId>a</groupId><artifactId>a</artifactId><version>1</version><dependencies><dependency><groupId>org.springframework.boot</groupId><artifactId>spring-boot-starter-web</artifactId><version>3.3.5</version></dependency></dependencies></project>' > pom.xml`,
    install: 'mvn -q -B dependency:resolve',
  },
]

/** The first program of a new machine: with a part of the standard library that takes long to compile. */
const GO_PROGRAM = `package main

import "net/http"

func main() { http.ListenAndServe("127.0.0.1:0", nil) }
`

/** What servers that install the same as another one take, from the registries themselves. */
async function benchSecondServers(): Promise<void> {
  await using berth = await startInstance()
  const rows: Row[] = []
  for (const { tool, program, registry, prepare, install } of INSTALLS) {
    if (Bun.which(program) === null || !(await fetch(registry).catch(() => null))?.ok) {
      console.error(`SKIP ${tool}: there is no ${program}, or ${registry} is out of reach`)
      continue
    }
    const [first = Number.NaN, ...others] = [
      await inServer(berth, prepare, install),
      await inServer(berth, prepare, install),
      await inServer(berth, prepare, install),
    ]
    const second = median(others)
    rows.push({
      what: tool,
      measured: ms(second),
      baseline: ms(first),
      ratio: times(second / first),
      goal: '≤ 0.25 ×',
      met: second <= 0.25 * first,
    })
  }
  print('A further server installs the same from the real registries (baseline: the first one)', rows)
  if (Bun.which('go') !== null) print('The first Go program of a machine', await goRows(berth))
}

async function goRows(berth: Instance): Promise<Row[]> {
  const directory = mkdtempSync(join(tmpdir(), 'berth-bench-go-'))
  try {
    writeFileSync(join(directory, 'go.mod'), 'module example.com/a\n')
    writeFileSync(join(directory, 'main.go'), GO_PROGRAM)
    const env = { ...process.env, GOCACHE: join(directory, 'cache'), GOFLAGS: '-buildvcs=false' }
    const outside = await time(() => Bun.spawn(['go', 'build'], { cwd: directory, env }).exited)
    const prepare = `printf 'module example.com/a\n' > go.mod && printf '%s' '${GO_PROGRAM}' > main.go`
    const row = (what: string, measured: number): Row => ({
      what,
      measured: ms(measured),
      baseline: ms(outside),
      ratio: times(measured / outside),
    })
    const first = await inServer(berth, prepare, 'go build')
    const second = await inServer(berth, prepare, 'go build')
    return [
      { ...row('first server', first), goal: '≤ 1.5 ×', met: first <= 1.5 * outside },
      { ...row('further server', second), goal: '≤ 0.25 ×', met: second <= 0.25 * outside },
    ]
  } finally {
    rmSync(directory, { recursive: true })
  }
}

/** Returns the milliseconds that a command takes in a new server. */
async function inServer(berth: Instance, prepare: string, command: string): Promise<number> {
  const { id } = await berth.call('POST', '/servers', { tier: 'large' })
  const run = async (script: string): Promise<void> => {
    const { exitCode: code, stderr } = await berth.call('POST', `/servers/${id}/exec`, {
      command: script,
      timeoutMs: 300_000,
    })
    if (code !== 0) throw new Error(`${script} failed with ${code}: ${stderr}`)
  }
  try {
    await run(prepare)
    return await time(() => run(command))
  } finally {
    await berth.call('DELETE', `/servers/${id}`)
  }
}

/** What an install takes: straight from a registry, through an empty cache, and for every server after the first. */
export async function benchPackages(): Promise<void> {
  await benchSecondServers()
  const direct: number[] = []
  const first: number[] = []
  const second: number[] = []
  for (let run = 0; run < RUNS; run++) {
    await using world = new World(publications())
    world.registry.intercept = () => Bun.sleep(LATENCY_MS).then(() => null)
    direct.push(await install(world, 'direct', { BUN_CONFIG_REGISTRY: world.registry.url }))
    first.push(await install(world, 'first'))
    second.push(await install(world, 'second'))
  }
  const baseline = median(direct)
  const row = (what: string, values: readonly number[]) => ({
    what,
    measured: ms(median(values)),
    baseline: ms(baseline),
    ratio: times(median(values) / baseline),
  })
  print(
    `bun install of ${LAYERS * PER_LAYER} packages, registry ${LATENCY_MS} ms away (baseline: no cache)`,
    [
      row('first server, empty cache', first),
      {
        ...row('second server', second),
        goal: '≤ 0.75 ×',
        met: median(second) <= 0.75 * baseline,
      },
    ],
  )
}

async function install(world: World, name: string, env: Record<string, string> = {}): Promise<number> {
  const names = layer(0)
  const dependencies = Object.fromEntries(names.map((one) => [one, '^1.0.0']))
  const server = await world.server(`srv_${name}`, { 'package.json': { name: 'app', dependencies } })
  server.sandbox.forward(world.registry.port)
  return time(async () => {
    const { exitCode, stderr } = await server.install('bun install', { env })
    if (exitCode !== 0) throw new Error(`bun install failed: ${stderr}`)
  })
}

const layer = (depth: number): string[] =>
  Array.from({ length: PER_LAYER }, (_, index) => `p${depth}-${index}`)

const publications = () =>
  Array.from({ length: LAYERS }, (_, depth) =>
    layer(depth).map((name, index) => ({
      name,
      ballast: BALLAST,
      dependencies: depth + 1 < LAYERS ? { [`p${depth + 1}-${index}`]: '^1.0.0' } : {},
    })),
  ).flat()
