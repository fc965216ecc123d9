import { afterAll, beforeAll, expect, test } from 'bun:test'
import { chmodSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, truncateSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { toolsOnHost } from '../../src/compute/tools.ts'
import type { KeyedInfo } from '../support/berth.ts'
import { isLocalCompute } from '../support/compute.ts'
import { processesOf, until } from '../support/processes.ts'
import { call, type ServeProcess, serve } from '../support/serve.ts'

/** Milliseconds that Go may take to compile its standard library on a busy machine. */
const PATIENCE_MS = 600_000

const reason = isLocalCompute
  ? 'there is no go on this machine'
  : 'servers elsewhere have the Go of their image'
const hasGo = isLocalCompute && Bun.which('go') !== null
if (!hasGo) console.error(`SKIP Go's compiled library: ${reason}`)
const goTest = hasGo ? test : test.skip

const WEB = `package main

import "net/http"

func main() { println(http.StatusText(200)) }
`
const SMALL = 'package main\n\nfunc main() { println("small") }\n'

let folder: string
let berth: ServeProcess
let info: KeyedInfo

beforeAll(async () => {
  if (!hasGo) return
  folder = mkdtempSync(join(tmpdir(), 'berth-go-library-'))
  await start()
})
afterAll(async () => {
  if (!hasGo) return
  berth.child.kill('SIGTERM')
  await berth.child.exited
  await until(() => processesOf(folder).length === 0, 'no process is left')
  rmSync(folder, { recursive: true, force: true })
})

async function start(): Promise<void> {
  berth = serve(['--port', '0', '--data', folder])
  info = await berth.ready
}

/** Provisions a server with a program of Go. */
async function server(program = WEB): Promise<string> {
  const { id } = (await call(info, 'POST', '/servers', { tier: 'large' })).body
  for (const [path, content] of Object.entries({ 'go.mod': 'module example.com/a\n', 'main.go': program }))
    await call(info, 'PUT', `/servers/${id}/files`, { path, content })
  return id
}

const exec = async (id: string, command: string): Promise<{ stdout: string; exitCode: number }> =>
  (await call(info, 'POST', `/servers/${id}/exec`, { command, timeoutMs: PATIENCE_MS })).body

/** Builds a server's program, runs it, and returns what it prints and how many packages were compiled. */
async function build(id: string): Promise<{ prints: string; compiled: number }> {
  const { stdout } = await exec(id, 'go build -x 2>&1 | grep -c "/compile "; ./a 2>&1')
  const [compiled, prints = ''] = stdout.split('\n')
  return { prints, compiled: Number(compiled) }
}

const entries = (path: string): string[] => (existsSync(path) ? readdirSync(path) : [])
const asides = (): string[] => entries(join(folder, 'servers')).filter((name) => name.startsWith('srv_aside'))
const programs = async (id: string): Promise<string> => {
  const { stdout } = await exec(id, 'dirname $(dirname $npm_config_globalconfig)')
  return join(toolsOnHost(folder, stdout.trim()), 'programs')
}
async function reset(): Promise<void> {
  const headers = { authorization: `Bearer ${info.admin_token}` }
  expect((await fetch(`${info.base_url}/_berth/reset`, { method: 'POST', headers })).status).toBe(200)
}

/** Begins to build a server's program, and resolves when berth compiles the library. */
async function compiling(id: string): Promise<{ end: Promise<unknown> }> {
  const end = build(id).catch(() => {})
  await until(
    () => asides().some((name) => entries(join(folder, 'servers', name, 'caches/go-build')).length > 0),
    'the library is being compiled',
    PATIENCE_MS,
  )
  return { end }
}

const ONLY_ITS_OWN = { prints: 'OK', compiled: 1 }

goTest(
  'a program without HTTP compiles what it needs, and waits for nothing else',
  async () => {
    const id = await server(SMALL)
    const { prints, compiled } = await build(id)
    expect(prints).toBe('small')
    expect(compiled).toBeGreaterThan(5)
    expect(entries(await programs(id))).toEqual([])
  },
  PATIENCE_MS,
)

goTest('berth compiles nothing with a program that is no Go of the machine', async () => {
  const id = await server()
  const ask = `fetch(process.env.BERTH_PACKAGES_URL + '-/' + process.env.BERTH_PACKAGES_TOKEN + '/programs/go?compile=1&program=/bin/sh').then(({ status }) => console.log(status))`
  expect((await exec(id, `bun -e "${ask}"`)).stdout).toBe('404\n')
  expect(entries(await programs(id))).toEqual([])
})

goTest(
  'killed while it compiles, berth leaves nothing',
  async () => {
    const id = await server()
    const directory = await programs(id)
    const building = await compiling(id)
    expect(entries(directory)).toEqual([expect.stringMatching(/^\.new-/)])
    berth.child.kill('SIGKILL')
    await Promise.all([berth.child.exited, building.end])
    await start()
    await server()
    await until(() => asides().length === 0, 'the sandbox is gone')
    expect(entries(directory)).toEqual([])
  },
  PATIENCE_MS,
)

goTest(
  'a reset ends the compilation, and the next server begins it anew',
  async () => {
    const id = await server()
    const directory = await programs(id)
    const building = await compiling(id)
    await reset()
    await building.end
    expect(asides()).toEqual([])
    await until(() => entries(directory).length === 0, 'the archive is gone')
    await (await compiling(await server())).end
    expect(entries(directory)).toEqual([expect.stringMatching(/^go-/)])
  },
  PATIENCE_MS,
)

goTest(
  'the first server and each further one compile their own package only',
  async () => {
    expect(await build(await server())).toEqual(ONLY_ITS_OWN)
    const second = await server()
    expect(await build(second)).toEqual(ONLY_ITS_OWN)
    expect(entries(await programs(second))).toEqual([expect.stringMatching(/^go-[0-9a-f]{64}\.tar$/)])
    expect(asides()).toEqual([])
  },
  PATIENCE_MS,
)

goTest(
  'what a server does to its copy changes nothing for another',
  async () => {
    const id = await server()
    await build(id)
    const directory = await programs(id)
    const [name = ''] = entries(directory)
    const hash = (): string =>
      new Bun.CryptoHasher('sha256').update(readFileSync(join(directory, name))).digest('hex')
    const before = hash()
    await exec(id, `find $GOCACHE -name '*-[ad]' -exec sh -c 'for f; do echo bad > $f; done' - {} +`)
    if (info.isolation !== 'none')
      await exec(
        id,
        'archive=$(echo $(dirname $(dirname $npm_config_globalconfig))/programs/*); rm -f $archive; echo bad > $archive',
      )
    expect(hash()).toBe(before)
    expect(await build(await server())).toEqual(ONLY_ITS_OWN)
  },
  PATIENCE_MS,
)

goTest(
  'a server compiles for itself what a broken archive lacks',
  async () => {
    const id = await server()
    const directory = await programs(id)
    const path = join(directory, entries(directory)[0] ?? '')
    const whole = readFileSync(path)
    chmodSync(path, 0o644)
    truncateSync(path, Math.floor(whole.length * 0.98))
    const { prints, compiled } = await build(id)
    expect(prints).toBe('OK')
    expect(compiled).toBeGreaterThan(1)
    expect(compiled).toBeLessThan(100)
    rmSync(path)
    await Bun.write(path, whole)
  },
  PATIENCE_MS,
)

goTest(
  'a copy goes with its server and with a reset, and the library stays',
  async () => {
    const [first, second] = [await server(), await server()]
    for (const id of [first, second]) expect(await build(id)).toEqual(ONLY_ITS_OWN)
    const directory = await programs(first)
    const copies = () =>
      [first, second].filter((id) => existsSync(join(folder, 'servers', id, 'caches/go-build')))
    expect(copies()).toEqual([first, second])
    await call(info, 'DELETE', `/servers/${first}`)
    await until(() => copies().length === 1, 'the copy is gone')
    await reset()
    await until(() => copies().length === 0, 'both copies are gone')
    expect(entries(directory).length).toBe(1)
    expect(await build(await server())).toEqual(ONLY_ITS_OWN)
  },
  PATIENCE_MS,
)
