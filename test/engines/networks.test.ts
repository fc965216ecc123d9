import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { EngineDriver } from '../../src/compute/engine/engine-driver.ts'
import type { Sandbox } from '../../src/compute/sandbox.ts'
import { LIMITS, run } from '../compute/bench.ts'
import { firstLine, type KeyedInfo } from '../support/berth.ts'
import { EngineRig, missingForEngine } from '../support/engines/engine-rig.ts'
import { projectPorts } from '../support/ports.ts'
import { until } from '../support/processes.ts'
import { command as berth, cleanEnvironment, NO_SPARE_SERVERS } from '../support/serve.ts'

/** The ends of the wire between the engine's machine and another one (RFC 5737). */
const ENGINE_ADDRESS = '192.0.2.1'
const OUTSIDE_ADDRESS = '192.0.2.2'

/** A program that responds on a port with the address that a request comes from. */
const LISTEN = (port: number): string =>
  `Bun.serve({ port: ${port}, hostname: "0.0.0.0", fetch: (request, server) => new Response(server.requestIP(request).address) }); console.log("listens")`

/** A program that prints the status and the body of a response, or that it got none. */
const GET = (url: string, headers: object = {}): string =>
  `console.log(await fetch("${url}", { redirect: "manual", headers: ${JSON.stringify(headers)}, signal: AbortSignal.timeout(2000) }).then(async (response) => response.status + " " + (await response.text()).slice(0, 40), () => "nothing"))`

/** Runs a program with Bun on a server. */
const bun = async (sandbox: Sandbox, program: string): Promise<string> =>
  (await run(sandbox, `bun -e '${program}'`)).stdout.trim()

/** Passes over tests on engines that this machine lacks. */
function lacks(kind: 'docker' | 'podman'): boolean {
  const missing = missingForEngine(kind)
  if (missing !== null) console.error(`SKIP networks of ${kind}: ${missing}`)
  return missing !== null
}

describe.skipIf(lacks('docker'))('a network of servers', () => {
  let directory: string
  let rig: EngineRig
  let outside: Bun.Subprocess
  /** What enters the network of the other machine. */
  let inOutside: string[]
  const spawned: Bun.Subprocess[] = []

  beforeAll(async () => {
    directory = mkdtempSync(join(tmpdir(), 'berth-networks-'))
    rig = await EngineRig.start('docker')
    await rig.prepare()
    // Another machine, to which the engine's has a wire.
    outside = Bun.spawn(['unshare', '--net', 'sleep', 'infinity'])
    const other = String(outside.pid)
    inOutside = ['nsenter', '--target', other, '--net']
    const shell = async (script: string, where = rig.entering): Promise<void> => {
      expect(await Bun.spawn([...where, 'sh', '-c', script]).exited).toBe(0)
    }
    await until(async () => (await Bun.spawn([...inOutside, 'ip', 'link', 'show', 'lo']).exited) === 0, 'it')
    await shell(
      `ip link add out0 type veth peer name in0 netns ${other} && ip addr add ${ENGINE_ADDRESS}/24 dev out0 && ip link set out0 up`,
    )
    await shell(`ip addr add ${OUTSIDE_ADDRESS}/24 dev in0 && ip link set in0 up`, inOutside)
    const web = Bun.spawn([...inOutside, process.execPath, '-e', LISTEN(80)], { stdout: 'pipe' })
    spawned.push(web)
    await web.stdout.getReader().read()
  }, 300_000)
  afterAll(async () => {
    for (const child of [...spawned, outside]) {
      child?.kill()
      await child?.exited
    }
    await rig?.[Symbol.asyncDispose]()
    rmSync(directory, { recursive: true, force: true })
  }, 60_000)

  const driverOn = (network: string): EngineDriver =>
    rig.driver(mkdtempSync(join(directory, 'data-')), { network })
  const started = async (driver: EngineDriver, id = 'srv_a'): Promise<Sandbox> =>
    driver.start(id, await driver.create(id), LIMITS)
  const networks = async (): Promise<string[]> =>
    ((await rig.client().json('GET', '/networks')) as { Name: string }[]).map(({ Name }) => Name).sort()
  const removeNetwork = (name: string) => rig.client().send('DELETE', `/networks/${name}`)
  /** Returns what a program on a machine prints. @param entering what enters the machine's network */
  const on = async (entering: string[], program: string): Promise<string> =>
    (await Bun.spawn([...entering, process.execPath, '-e', program], { stdout: 'pipe' }).stdout.text()).trim()

  test('of berth is made once by those who need it at once, leads outside, and parts servers', async () => {
    const drivers = Array.from({ length: 6 }, () => driverOn('berth'))
    const sandboxes = await Promise.all(
      drivers.flatMap((driver) => [started(driver), started(driver, 'srv_b')]),
    )
    expect(await networks()).toEqual(['berth', 'bridge', 'host', 'none'])
    const [one, other] = sandboxes
    if (one === undefined || other === undefined) throw new Error('no servers')
    expect(await bun(one, GET(`http://${OUTSIDE_ADDRESS}`))).toBe(`200 ${ENGINE_ADDRESS}`)
    const address = 'console.log(os.networkInterfaces().eth0[0].address)'
    const [own, its] = [await bun(one, address), await bun(other, address)]
    const { promise: listens, resolve } = Promise.withResolvers<void>()
    other.exec({ command: `bun -e '${LISTEN(8080)}'`, timeoutMs: null, onOutput: () => resolve() })
    await listens
    expect(await on(rig.entering, GET(`http://${its}:8080`))).toMatch(/^200 /)
    expect(await bun(one, GET(`http://${its}:8080`))).toBe('nothing')
    expect(own).not.toBe(its)
    // A loopback of its own, of both families.
    expect(
      await bun(
        one,
        `Bun.serve({ port: 9000, hostname: "::1", fetch: () => new Response("six") }); ${GET('http://[::1]:9000')}; process.exit()`,
      ),
    ).toBe('200 six')
    await Promise.all(sandboxes.map((sandbox) => sandbox.stop()))
  }, 120_000)

  test('of berth that somebody has removed is made again, and one of its name where servers meet is refused', async () => {
    const driver = driverOn('berth')
    const handle = await driver.create('srv_a')
    await (await driver.start('srv_a', handle, LIMITS)).stop()
    await removeNetwork('berth')
    await (await driver.start('srv_a', handle, LIMITS)).stop()
    await removeNetwork('berth')
    await rig.client().send('POST', '/networks/create', { body: { Name: 'berth', Driver: 'bridge' } })
    try {
      const sentence =
        'has a network berth in which servers reach each other. Remove it with "docker network rm berth"'
      await expect(driver.start('srv_a', handle, LIMITS)).rejects.toThrow(sentence)
      expect(await driver.probe()).toMatchObject({
        available: false,
        remedy: expect.stringMatching(/^Remove it/),
      })
    } finally {
      await removeNetwork('berth')
    }
    await driver.destroy(handle)
  }, 60_000)

  test('that has another name is taken as it is; a missing one is named at once', async () => {
    const missing = driverOn('missing')
    expect(await missing.probe()).toMatchObject({
      available: false,
      reason: `${rig.name} has no network missing.`,
      remedy: 'Make it there, or name another with --engine-network.',
    })
    await expect(started(missing)).rejects.toThrow('has no network missing. Make it there')
    const body = { Name: 'own', Driver: 'bridge', IPAM: { Config: [{ Subnet: '198.51.100.0/24' }] } }
    await rig.client().send('POST', '/networks/create', { body })
    const sandbox = await started(driverOn('own'))
    expect(await bun(sandbox, 'console.log(os.networkInterfaces().eth0[0].address)')).toStartWith(
      '198.51.100.',
    )
    await sandbox.stop()
    await removeNetwork('own')
  }, 60_000)

  test.each(['berth', 'none'])(
    '(%s) gives no right of a person to what servers send to the port of berth, from whatever address',
    async (network) => {
      const dataDir = join(directory, network)
      const start = (...args: string[]) =>
        Bun.spawn([...rig.entering, ...berth, ...args], {
          stdio: ['ignore', 'pipe', 'inherit'],
          env: cleanEnvironment(),
        })
      const child = start(
        ...['serve', '--json', '--port', '0', '--host', '0.0.0.0', '--data', dataDir, '--compute', 'docker'],
        ...['--engine', `unix://${rig.socket}`, '--engine-network', network, '--outbound', 'open'],
        ...['--project-ports', projectPorts(), ...NO_SPARE_SERVERS],
      )
      try {
        const info = JSON.parse(String(await firstLine(child.stdout))) as KeyedInfo & { sign_in_url: string }
        const server = (await start('servers', 'create', '-q', '--data', dataDir).stdout.text()).trim()
        const onServer = (program: string): Promise<string> =>
          start('exec', '--data', dataDir, server, '--', 'bun', '-e', program).stdout.text()
        const cookie = await on(
          rig.entering,
          `console.log((await fetch("${info.sign_in_url}", { redirect: "manual" })).headers.get("set-cookie").split(";")[0])`,
        )
        expect(cookie).toStartWith('berth_session_')
        const { port } = new URL(info.base_url)
        expect(await on(rig.entering, GET(info.base_url, { cookie }))).toMatch(/^200 /)
        // Servers that have a network may come from anywhere.
        const fromAway = await on(inOutside, GET(`http://${ENGINE_ADDRESS}:${port}`, { cookie }))
        expect(fromAway).toMatch(network === 'none' ? /^200 / : /^403 /)
        const made = (await rig.client().find('/networks/berth')) as {
          IPAM: { Config: { Gateway: string }[] }
        } | null
        const gateways = made?.IPAM.Config.map(({ Gateway }) => Gateway) ?? []
        for (const host of ['127.0.0.1', ENGINE_ADDRESS, ...gateways]) {
          const url = `http://${host}:${port}`
          expect(await onServer(GET(url, { cookie }))).toMatch(/^403 /)
          expect(await onServer(GET(`${url}/_berth/events`))).toMatch(/^40[13] /)
        }
      } finally {
        child.kill('SIGTERM')
        await child.exited
        if (network === 'berth') await removeNetwork('berth')
      }
    },
    60_000,
  )
})

describe.skipIf(lacks('podman'))('a network of servers on Podman', () => {
  test('of berth is refused, since servers would reach each other, and none is made', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'berth-networks-'))
    await using rig = await EngineRig.start('podman')
    try {
      expect(await rig.driver(directory, { network: 'berth' }).probe()).toMatchObject({
        available: false,
        reason: `${rig.name} is Podman, in whose networks servers reach each other.`,
        remedy: expect.stringMatching(/^Name a network where they may with --engine-network/),
      })
      expect(await rig.client().find('/networks/berth')).toBe(null)
    } finally {
      rmSync(directory, { recursive: true, force: true })
    }
  }, 60_000)
})
