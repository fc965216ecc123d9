import { afterAll, beforeAll, expect, test } from 'bun:test'
import { existsSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { release, version } from './facts.ts'
import { lacks, Machine } from './support.ts'

/** The kernel starts programs of arm64 by qemu if it is registered here (binfmt_misc); Bun needs that system's C library. */
const isEmulated =
  process.arch === 'arm64' ||
  (existsSync('/proc/sys/fs/binfmt_misc/qemu-aarch64') && existsSync('/lib/ld-linux-aarch64.so.1'))
const isSkipped = lacks(
  isEmulated
    ? null
    : 'the executable for arm64: qemu-user-static is not registered, or there is no libc6:arm64',
)

const machine = new Machine()
const berth = join(machine.path, `berth-${version}-linux-arm64/berth`)
let child: Bun.Subprocess<'ignore', 'pipe', 'pipe'> | null = null
let ready = { base_url: '', api_key: '' }

beforeAll(async () => {
  if (isSkipped) return
  await machine.output(['tar', '-xzf', join(release, `berth-${version}-linux-arm64.tar.gz`)])
  mkdirSync(join(machine.path, 'data'))
  // qemu passes no system call of Landlock or of namespaces to the kernel.
  const isolation = ['--isolation', 'none', '--spare-servers', '0']
  child = Bun.spawn(
    [berth, 'serve', '--json', '--port', '0', '--data', join(machine.path, 'data'), ...isolation],
    {
      env: machine.env,
      stdio: ['ignore', 'pipe', 'pipe'],
    },
  )
  const { value } = await child.stdout.getReader().read()
  ready = JSON.parse(new TextDecoder().decode(value))
}, 120_000)

afterAll(async () => {
  child?.kill('SIGTERM')
  await child?.exited
  machine[Symbol.dispose]()
})

const call = async (method: string, path: string, body?: unknown): Promise<unknown> => {
  const response = await fetch(`${ready.base_url}${path}`, {
    method,
    headers: { authorization: `Bearer ${ready.api_key}`, 'content-type': 'application/json' },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })
  if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`)
  return response.json()
}

test.skipIf(isSkipped)('the executable for arm64 says so, with the bytecode of this machine', async () => {
  const facts = JSON.parse(await machine.output([berth, 'version', '--json']))
  expect(facts).toMatchObject({ version, system: 'linux-arm64', libc: 'glibc' })
  const { stderr, stdout } = await machine.run([berth, 'version'], { env: { BUN_JSC_verboseDiskCache: '1' } })
  expect(stdout + stderr).toContain('[Disk Cache] Cache hit for sourceCode')
})

test.skipIf(isSkipped)('a server, a command, files and an app work on arm64', async () => {
  const { id } = (await call('POST', '/servers')) as { id: string }
  const result = await call('POST', `/servers/${id}/exec`, { command: 'echo out; echo err >&2; exit 3' })
  expect(result).toMatchObject({ stdout: 'out\n', stderr: 'err\n', exitCode: 3 })
  await call('PUT', `/servers/${id}/files`, { path: 'site/index.html', content: '<h1>arm64</h1>' })
  const copied = await call('POST', `/servers/${id}/exec`, { command: 'cat site/index.html' })
  expect(copied).toMatchObject({ stdout: '<h1>arm64</h1>' })
  const data = join(machine.path, 'data')
  const site = join(machine.path, 'site')
  await machine.output([berth, 'cp', '--data', data, `${id}:site`, site])
  const ofInstance = ['--data', data]
  await machine.output([berth, 'projects', 'create', site, '--server', id, '--public', ...ofInstance])
  const { projects } = JSON.parse(await machine.output([berth, 'projects', 'list', '--json', ...ofInstance]))
  const [{ url: address }] = projects
  expect(await (await fetch(address)).text()).toBe('<h1>arm64</h1>')
})
