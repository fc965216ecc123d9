import { describe, expect, test } from 'bun:test'
import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { Registry } from './registry.ts'
import { type Server, TIER, World } from './world.ts'

const PACKAGES = [{ name: 'tiny', dependencies: { '@s/dep': '^1.0.0' }, says: 'hello' }, { name: '@s/dep' }]
const APP = { 'package.json': { name: 'app', version: '1.0.0', dependencies: { tiny: '^1.0.0' } } }

/** What the app then finds, with a JavaScript runtime that is always there. */
const FOUND = `bun -e "console.log(require('tiny'), require('@s/dep'))"`

const hasNpm = Bun.which('npm', { PATH: '/usr/local/bin:/usr/bin:/bin' }) !== null
const MANAGERS: [command: string, lock: string][] = [
  ['bun install', 'bun.lock'],
  ...(hasNpm ? [['npm install', 'package-lock.json'] as [string, string]] : []),
]
if (!hasNpm) console.error('SKIP npm install: there is no npm on this machine')

const installed = async (server: Server, command: string): Promise<void> => {
  const { exitCode, stdout, stderr } = await server.install(`${command} && ${FOUND}`)
  expect({ exitCode, stdout, stderr }).toMatchObject({
    exitCode: 0,
    stdout: expect.stringContaining('hello @s/dep\n'),
  })
}

describe.each(MANAGERS)('%s', (command, lock) => {
  test('installs through the mirror, and a second server without the network', async () => {
    await using world = new World(PACKAGES)
    await installed(await world.server('srv_a', APP), command)
    expect(world.registry.count('.tgz')).toBe(2)
    await world.registry.cut()
    await installed(await world.server('srv_b', APP), command)
    expect(world.packages.takeProblems('srv_b')).toEqual([])
  })

  test('leaves a lock file that names no mirror, and installs from it under another berth', async () => {
    await using world = new World(PACKAGES)
    const first = await world.server('srv_a', APP)
    await installed(first, command)
    const text = await first.text(lock)
    expect(text).toContain('sha512-')
    expect(text).not.toContain('127.0.0.1')
    await world.restart()
    const again = command === 'npm install' ? 'npm ci' : 'bun install --frozen-lockfile'
    await installed(await world.server('srv_b', { ...APP, [lock]: text }), again)
    expect(world.registry.count('.tgz')).toBe(2)
  })

  test('takes packages of a scope from the registry that the project names, with its own credential', async () => {
    await using world = new World([PACKAGES[0] as never])
    await using own = new Registry([{ name: '@s/dep' }])
    const credentials: (string | null)[] = []
    own.intercept = (_, request) => {
      credentials.push(request.headers.get('authorization'))
      return null
    }
    const npmrc = `@s:registry=${own.url}/\n//127.0.0.1:${own.port}/:_authToken=own\n`
    const server = await world.server('srv_a', { ...APP, '.npmrc': npmrc })
    server.sandbox.forward(own.port)
    await installed(server, command)
    expect(own.count('.tgz')).toBe(1)
    expect(world.registry.count('.tgz')).toBe(1)
    expect(new Set(credentials)).toEqual(new Set(['Bearer own']))
  })

  test('asks the registry alone that the project names as its own', async () => {
    await using world = new World([])
    await using own = new Registry(PACKAGES)
    const npmrc = `registry=${own.url}/\n`
    const server = await world.server('srv_a', { ...APP, '.npmrc': npmrc })
    server.sandbox.forward(own.port)
    await installed(server, command)
    expect(world.registry.asked).toEqual([])
  })

  test('of several servers at once downloads everything once', async () => {
    await using world = new World(PACKAGES)
    const servers = [await world.server('srv_a', APP), await world.server('srv_b', APP)]
    await Promise.all(servers.map((server) => installed(server, command)))
    expect(world.registry.count('.tgz')).toBe(2)
  })

  test('fails at once, with the reason, where a package cannot be had', async () => {
    await using world = new World([PACKAGES[0] as never])
    const server = await world.server('srv_a', APP)
    const { exitCode } = await server.install(command, { timeoutMs: 20_000 })
    expect(exitCode).toBeGreaterThan(0)
    expect(exitCode).toBeLessThan(128)
    expect(world.packages.takeProblems('srv_a').join()).toContain('/@s%2fdep does not exist')
  })
})

const deno = Bun.which('deno', { PATH: '/usr/local/bin:/usr/bin:/bin' }) === null ? test.skip : test
deno('Deno installs through the mirror, and its lock file names none', async () => {
  await using world = new World(PACKAGES)
  const files = {
    'deno.json': { imports: { tiny: 'npm:tiny@1' } },
    'main.ts': 'import says from "tiny"; console.log(says)',
  }
  const server = await world.server('srv_a', files)
  const { stdout, stderr } = await server.install('deno install --entrypoint main.ts && deno run -A main.ts')
  expect({ stdout, stderr }).toMatchObject({ stdout: expect.stringContaining('hello\n') })
  const lock = await server.text('deno.lock')
  expect(lock).toContain('sha512-')
  expect(lock).not.toContain('127.0.0.1')
  await world.registry.cut()
  const second = await world.server('srv_b', { ...files, 'deno.lock': lock })
  expect((await second.install('deno install --frozen --entrypoint main.ts')).exitCode).toBe(0)
  expect(await second.text('deno.lock')).toBe(lock)
  await using own = new Registry(PACKAGES)
  const named = await world.server('srv_c', { ...files, '.npmrc': `registry=${own.url}/\n` })
  named.sandbox.forward(own.port)
  await named.install('deno install --entrypoint main.ts')
  expect(own.count('.tgz')).toBe(2)
})

describe('what one server does changes nothing for another', () => {
  test('a lock file that promises other bytes for a package', async () => {
    await using world = new World([...PACKAGES, { name: 'evil', says: 'poison' }])
    const { integrity, tarball } = world.registry.dist('evil')
    const entry = { version: '1.0.0', resolved: tarball, integrity }
    const lock = {
      ...{ name: 'app', version: '1.0.0', lockfileVersion: 3, requires: true },
      packages: { '': { name: 'app', dependencies: { tiny: '^1.0.0' } }, 'node_modules/tiny': entry },
    }
    const bun = `{"lockfileVersion":1,"workspaces":{"":{"name":"app","dependencies":{"tiny":"^1.0.0"}}},
      "packages":{"tiny":["tiny@1.0.0","${tarball}",{},"${integrity}"]}}`
    const attacker = await world.server('srv_a', { ...APP, 'package-lock.json': lock, 'bun.lock': bun })
    // The lock file names the registry itself.
    attacker.sandbox.forward(world.registry.port)
    await attacker.install('bun install')
    if (hasNpm) await attacker.install('npm ci')
    for (const [index, [command]] of MANAGERS.entries())
      await installed(await world.server(`srv_${index}`, APP), command)
  })

  test('requests to the mirror with its own credential', async () => {
    await using world = new World([...PACKAGES, { name: 'evil', says: 'poison' }])
    const attacker = await world.server('srv_a')
    await attacker.workspace.write('attack.js', new TextEncoder().encode(ATTACK))
    const { stdout } = await attacker.install('bun attack.js')
    expect(stdout.trim().split('\n')).toEqual(['405', '405', '405', '405', '404', '404', '401'])
    await installed(await world.server('srv_b', APP), 'bun install')
  })

  // Where nothing is isolated everything can be reached.
  const isolated = TIER === 'none' ? () => {} : test
  isolated('reading or writing the cache’s files', async () => {
    await using world = new World(PACKAGES)
    const attacker = await world.server('srv_a', APP)
    await installed(attacker, 'bun install')
    for (const attempt of [
      `ls ${world.cache}`,
      `cat ${world.cache}/tarballs/*`,
      `for f in ${world.cache}/tarballs/*; do echo poison > "$f" || exit 1; done`,
      `rm -r ${world.cache}/tarballs`,
      `ln -s ${world.cache} link && echo poison > link/tarballs/x`,
    ]) {
      const { exitCode } = await attacker.install(attempt)
      expect(`${attempt}: ${exitCode === 0}`).toBe(`${attempt}: false`)
    }
    await world.registry.cut()
    await installed(await world.server('srv_b', APP), 'bun install')
  })
})

/** Tries to change what the mirror gives for `tiny`. */
const ATTACK = `
const { BERTH_PACKAGES_URL: url, BERTH_PACKAGES_TOKEN: token } = process.env
const ask = async (path, method = 'GET', headers = { authorization: 'Bearer ' + token }) => {
  const body = method === 'GET' ? undefined : JSON.stringify({ name: 'tiny', versions: {} })
  console.log((await fetch(url + path, { method, headers, body })).status)
}
await ask('tiny', 'PUT')
await ask('tiny/-/tiny-1.0.0.tgz', 'PUT')
await ask('-/package/tiny/dist-tags/latest', 'POST')
await ask('tiny', 'DELETE')
await ask('tiny/-/..%2f..%2fevil%2f-%2fevil-1.0.0.tgz')
await ask('tiny/-/evil-1.0.0.tgz')
await ask('tiny', 'GET', {})
`

test('a berth that is killed in the middle of a download leaves nothing half', async () => {
  await using world = new World([{ name: 'tiny', ballast: 400_000 }, { name: '@s/dep' }])
  const { tarball } = world.registry.dist('tiny')
  const whole = await (await fetch(tarball)).bytes()
  const { promise: killed, resolve: kill } = Promise.withResolvers<void>()
  world.registry.intercept = (path) =>
    path.endsWith('.tgz')
      ? new Response(
          new ReadableStream({
            async start(controller) {
              controller.enqueue(whole.subarray(0, 200_000))
              await killed
              controller.close()
            },
          }),
        )
      : null
  const script = join(import.meta.dir, 'downloader.ts')
  const other = Bun.spawn([process.execPath, script, world.bench.dataDir, world.registry.url], {
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  const incoming = join(world.cache, 'incoming')
  const size = () => {
    const [file] = existsSync(incoming) ? readdirSync(incoming) : []
    return file === undefined ? 0 : Bun.file(join(incoming, file)).size
  }
  while (size() < 200_000) await Bun.sleep(5)
  other.kill('SIGKILL')
  await other.exited
  kill()
  world.registry.intercept = () => null
  expect(readdirSync(join(world.cache, 'files'))).toEqual([])
  await world.ask('-/ping')
  expect(readdirSync(incoming)).toEqual([])
  expect(await (await world.ask('tiny/-/tiny-1.0.0.tgz')).bytes()).toEqual(whole)
})
