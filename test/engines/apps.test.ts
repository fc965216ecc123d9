import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { networkInterfaces, tmpdir } from 'node:os'
import { join } from 'node:path'
import { run } from '../cli/command.ts'
import { Registry } from '../hosting/registries/registry.ts'
import type { KeyedInfo } from '../support/berth.ts'
import { browserPath, launchBrowser } from '../support/browser.ts'
import { EngineRig, missingForEngine } from '../support/engines/engine-rig.ts'
import { until } from '../support/processes.ts'
import { archiveOf } from '../support/projects.ts'
import { call, type ServeProcess, serve } from '../support/serve.ts'

/** A program of Go that listens. */
const GO = 'package main\n\nimport "net/http"\n\nfunc main() { http.ListenAndServe(":8080", nil) }\n'

/** An address of this machine that is not loopback, which servers reach if it is listed. */
const ownAddress = Object.values(networkInterfaces())
  .flatMap((all) => all ?? [])
  .find(({ family, internal }) => family === 'IPv4' && !internal)?.address

const missing = missingForEngine('docker')
if (missing !== null) console.error(`SKIP apps of servers on an engine: ${missing}`)

describe.skipIf(missing !== null)('apps of servers on an engine', () => {
  const directory = mkdtempSync(join(tmpdir(), 'berth-apps-'))
  const registry = new Registry([
    {
      name: 'pnpm',
      version: '99.0.0',
      files: { 'package/bin/pnpm.cjs': '#!/usr/bin/env node\nconsole.log(__filename)' },
    },
  ])
  /** A service of this machine. */
  const handedIn = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: () => new Response('handed in') })
  let rig: EngineRig
  let berth: ServeProcess
  let info: KeyedInfo

  beforeAll(async () => {
    rig = await EngineRig.start('docker')
    await rig.prepare()
    const engine = [
      '--server-hosts',
      String(handedIn.port),
      '--compute',
      'docker',
      '--engine',
      `unix://${rig.socket}`,
      '--npm-registry',
      registry.url,
    ]
    berth = serve(['--port', '0', '--data', join(directory, 'data'), ...engine])
    info = await berth.ready
  }, 300_000)
  afterAll(async () => {
    berth?.child.kill('SIGTERM')
    await berth?.child.exited
    await rig[Symbol.asyncDispose]()
    await registry[Symbol.asyncDispose]()
    await handedIn.stop(true)
    rmSync(directory, { recursive: true, force: true })
  }, 60_000)

  const server = async (): Promise<string> => (await call(info, 'POST', '/servers')).body.id

  const exec = async (id: string, command: string) =>
    (await call(info, 'POST', `/servers/${id}/exec`, { command })).body

  /** Makes a project of these files, and waits until nothing goes on by itself. */
  async function project(serverId: string, files: Record<string, string>) {
    const source = await archiveOf(files)
    const made = await call(info, 'POST', `/servers/${serverId}/projects`, { visibility: 'public', source })
    expect(made.status).toBe(201)
    const shown = async () => (await call(info, 'GET', `/projects/${made.body.id}`)).body
    await until(async () => ['ready', 'failed'].includes((await shown()).init_phase), 'it to settle', 60_000)
    return shown()
  }

  test('a public project is reached from every server at its own address, and a private one from none', async () => {
    const [own, other] = await Promise.all([server(), server()])
    const { id, url } = await project(own, { 'index.html': '<h1>site</h1>' })
    const look = `bun -e 'console.log(await fetch("${url}").then((it) => it.text(), (error) => error.code))'`
    for (const serverId of [own, other, await server()]) {
      expect((await exec(serverId, look)).stdout).toContain('<h1>site</h1>')
    }
    expect((await call(info, 'PATCH', `/projects/${id}`, { visibility: 'private' })).status).toBe(200)
    await until(async () => (await exec(other, look)).stdout === 'ECONNREFUSED\n', 'nothing to answer')
    await call(info, 'PATCH', `/projects/${id}`, { visibility: 'public' })
    await until(async () => (await exec(other, look)).stdout.includes('<h1>site</h1>'), 'it to answer')
  }, 120_000)

  test('a service of this machine that is handed in is at its port', async () => {
    const id = await server()
    expect(
      (await exec(id, `bun -e 'console.log(await (await fetch("${handedIn.url}")).text())'`)).stdout,
    ).toBe('handed in\n')
  }, 60_000)

  test.skipIf(ownAddress === undefined)(
    'a server reaches outside what its rules allow, by the proxy that its commands find, and is told what they refuse',
    async () => {
      using outside = Bun.serve({
        ...{ port: 0, hostname: ownAddress ?? '127.0.0.1' },
        fetch: async (request) => new Response(`got ${(await request.bytes()).length}\n`),
      })
      const id = await server()
      const control = async (method: string, path: string, body?: object) => {
        const headers = { authorization: `Bearer ${info.admin_token}`, 'content-type': 'application/json' }
        const response = await fetch(`${info.base_url}/_berth/${path}`, {
          ...{ method, headers },
          ...(body === undefined ? {} : { body: JSON.stringify(body) }),
        })
        return response.json()
      }
      expect(await control('GET', 'health')).toMatchObject({
        enforced: { isolation: 'container', disk: 'watchdog', network: 'own, outbound by proxy' },
      })
      const rules = `servers/${id}/network`
      expect(await control('GET', rules)).toMatchObject({ outbound: 'public', enforced: true })

      const url = `http://${ownAddress}:${outside.port}/`
      const bun = (script: string) => exec(id, `bun -e '${script}'`)
      const look = (at: string) => bun(`console.log(await (await fetch("${at}")).text())`)
      const upload = `
        const response = await fetch("${url}", { method: "POST", body: new Uint8Array(3_000_000) })
        console.log(await response.text())
        process.exit(response.ok ? 0 : 1)`
      const refused = await bun(upload)
      expect(refused.stdout).toStartWith('berth refuses this connection')
      expect(refused.refused).toEqual([
        expect.objectContaining({ destination: `${ownAddress}:${outside.port}` }),
      ])
      // Nothing but the proxy leads outside.
      const direct = `
        require("node:net").connect(${outside.port}, "${ownAddress}").on("error", () => console.log("unreached"))`
      expect((await bun(direct)).stdout).toBe('unreached\n')

      const hosts = [`${ownAddress}:${outside.port}`]
      expect(await control('PATCH', rules, { hosts })).toMatchObject({ hosts, enforced: true })
      expect((await bun(upload)).stdout).toBe('got 3000000\n\n')
      expect((await look(url)).stdout).toBe('got 0\n\n')

      await control('POST', `servers/${id}/fault`, { kind: 'network', offline: true })
      expect((await look(url)).stdout).toContain('A network fault')
      await control('DELETE', `servers/${id}/fault`)
      expect((await look(url)).stdout).toBe('got 0\n\n')
      // What berth itself offers inside is not asked of the proxy.
      expect((await look(`${info.base_url}/_berth/health`)).stdout).toContain('"status":"ok"')
    },
    60_000,
  )

  test('a server that was stopped has its size, and nothing is started to look at it', async () => {
    const id = await server()
    const size = async (): Promise<number> =>
      (await call(info, 'GET', `/servers/${id}`)).body.server.storageUsedGb
    await exec(id, 'head -c 30000000 /dev/zero > big')
    await call(info, 'POST', `/servers/${id}/actions`, { action: 'stop' })
    const query = { filters: JSON.stringify({ label: [`berth.server=${id}`] }), all: '1' }
    const end = performance.now() + 2_500
    while (performance.now() < end) {
      expect(await size()).toBeCloseTo(0.03, 3)
      expect(await rig.client().json('GET', '/containers/json', { query })).toEqual([])
      await Bun.sleep(50)
    }
    // What reads its files is what starts something, and what was removed by that counts.
    expect((await call(info, 'DELETE', `/servers/${id}/files?path=big`)).status).toBeLessThan(300)
    await until(async () => (await size()) < 0.001, 'the smaller size')
  }, 60_000)

  test.skipIf(browserPath === null)(
    'the page of a server in the dashboard says what it is and of which image',
    async () => {
      const id = await server()
      const link = await fetch(`${info.base_url}/_berth/sign-in-links`, {
        method: 'POST',
        headers: { authorization: `Bearer ${info.admin_token}`, 'content-type': 'application/json' },
        body: JSON.stringify({ return_to: `/dashboard/servers/${id}` }),
      })
      const browser = await launchBrowser()
      try {
        const page = await browser.newPage()
        await page.goto(((await link.json()) as { url: string }).url)
        await page.getByText(`Container of berth-server:${info.version}`).waitFor()
      } finally {
        await browser.close()
      }
    },
    60_000,
  )

  test('doctor examines the engine and the tools of its image', async () => {
    const { exitCode, stdout } = await run(
      ['doctor', '--compute', 'docker', '--engine', `unix://${rig.socket}`],
      { cwd: directory },
    )
    expect(stdout).toMatch(/^✓ docker +works, and is used$/m)
    expect(stdout).toMatch(new RegExp(`^✓ image +berth-server:${info.version}$`, 'm'))
    expect(stdout).toMatch(/^✓ network +own, outbound by proxy$/m)
    expect(stdout).toMatch(/^✓ Python +3\.\d+\.\d+ \(of the image\)$/m)
    expect(stdout).toMatch(/^– Go +the image has none$/m)
    expect(exitCode).toBe(0)
  }, 60_000)

  test('doctor says once why no server can be started, and how that ends', async () => {
    const { exitCode, stdout } = await run(
      ['doctor', '--compute', 'docker', '--engine', `unix://${rig.socket}`],
      { cwd: directory, env: { BERTH_SERVER_IMAGE: 'missing:1' } },
    )
    expect(stdout).toMatch(
      /^✗ servers +none can be started: The engine .* has no image missing:1.*\n +Follow what it says\.$/m,
    )
    expect(stdout.match(/none can be started|no pseudo-terminal|not tried|^✓ image/gm)).toHaveLength(1)
    expect(exitCode).toBe(1)
  }, 60_000)

  test('a package manager that the image lacks is copied to each server, and fetched once', async () => {
    const call = `echo '{"packageManager":"pnpm@99.0.0"}' > package.json; pnpm; pnpm`
    for (const id of [await server(), await server()]) {
      const { stdout, stderr } = await exec(id, call)
      expect({ stdout, stderr }).toEqual({
        stdout: expect.stringMatching(
          /^(\/var\/cache\/berth\/programs\/\w{64}\/package\/bin\/pnpm\.cjs\n)\1$/,
        ),
        stderr: '',
      })
    }
    expect(registry.count('.tgz')).toBe(1)
  }, 120_000)

  test.each([
    [
      'that a file names',
      { 'go.mod': 'module a\n\ngo 1.21\n', 'main.go': GO },
      'This app needs Go 1.21 (go.mod)',
    ],
    ['that a command of its own calls', { 'berth.json': '{"start":"java Main.java"}' }, 'It needs Java'],
  ])(
    'an app ends with the remedy if the image lacks a tool %s',
    async (_, files, needs) => {
      const { id, init_phase } = await project(await server(), files)
      const { logs } = (await call(info, 'GET', `/projects/${id}/logs`)).body
      expect(init_phase).toBe('failed')
      const said = logs.map(({ text }: { text: string }) => text).join('\n')
      expect(said).toContain(
        `${needs}, which the image of the server does not have. On Docker, "berth engine prepare --base`,
      )
    },
    60_000,
  )
})
