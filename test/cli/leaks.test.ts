import { expect, test } from 'bun:test'
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { findFamily, readProcess } from '../../src/compute/processes.ts'
import { haltedBwrap } from '../support/halted-bwrap.ts'
import { until } from '../support/processes.ts'
import { startSurvivor } from '../support/survivor.ts'
import { run, serve, start, temporaryFolder } from './command.ts'

const bwrap = ['bwrap', '--unshare-user', '--unshare-pid', '--ro-bind', '/', '/', '--proc', '/proc', 'true']
const canSandbox = Bun.which('bwrap') !== null && Bun.spawnSync(bwrap).success
if (!canSandbox) console.error('SKIP a sandbox that was left: bwrap does not work here')

interface Leak {
  kind: string
  id: string
  detail: string
  remedy: string
  ports?: number[]
}

/** A folder of the test's own for all that instances make. */
function place() {
  const folder = temporaryFolder()
  const env = { XDG_STATE_HOME: join(folder.path, 'state'), TMPDIR: folder.path }
  return {
    path: folder.path,
    env,
    /** What is found, by kind. */
    async leaks(...more: string[]) {
      const { stdout, exitCode } = await run(['doctor', '--leaks', '--json', ...more], {
        cwd: folder.path,
        env,
      })
      const report = JSON.parse(stdout) as { ok: boolean; leaks: Leak[]; removed: Leak[] }
      expect(report.ok).toBe(report.leaks.length === 0)
      expect(exitCode).toBe(report.ok ? 0 : 1)
      // The machine may have leaks that are not of this test, and other tests leave heartbeats in /dev/shm meanwhile.
      const [leaks, removed] = [report.leaks, report.removed].map((all) =>
        all.filter((leak) =>
          JSON.stringify(leak).includes(leak.kind === 'file' ? folder.path : '/berth-cli-'),
        ),
      )
      return { leaks: leaks ?? [], removed: removed ?? [], kinds: leaks?.map(({ kind }) => kind).sort() }
    },
    [Symbol.dispose]: () => folder[Symbol.dispose](),
  }
}

/** Listens, tells its pid and port, and waits. Started so that nothing but its marker leads to its server. */
const LISTENER = `const server = Bun.listen({ hostname: '127.0.0.1', port: 0, socket: { data() {} } }); console.log(process.pid, server.port); setInterval(() => {}, 1000)`

/** Kills an instance and all that would clean up behind it: its agents, which end their servers' processes. */
async function killWithAgents(pid: number): Promise<void> {
  const family = findFamily({ roots: [pid], sessions: [], marker: '', except: [] })
  expect(family).toContain(pid)
  const agents = family.filter((one) => readProcess(one)?.parent === pid)
  for (const one of [...agents, pid]) process.kill(one, 'SIGSTOP')
  for (const one of [...agents, pid]) process.kill(one, 'SIGKILL')
  await until(() => [...agents, pid].every((one) => readProcess(one) === null), 'they are gone')
}

test('what a killed instance left is found with its remedy, what a living one has is not; --fix removes it', async () => {
  using here = place()
  // Without a PID namespace the kernel ends nothing by itself.
  const flags = ['--isolation', 'none', '--ephemeral']
  await using living = await serve(flags, { env: here.env })
  await using killed = await serve(flags, { env: here.env })
  const listeners = await Promise.all(
    [living, killed].map(async ({ info }) => {
      const connection = ['--base-url', info.base_url, '--api-key', info.api_key]
      const { stdout } = await run(['servers', 'create', '--json', ...connection])
      const command = `setsid bun -e "${LISTENER}" > out & until [ -s out ]; do sleep 0.02; done; cat out`
      const exec = await run(['exec', JSON.parse(stdout).id, ...connection, '--', 'sh', '-c', command])
      const [pid = Number.NaN, port = Number.NaN] = exec.stdout.trim().split(' ').map(Number)
      return { pid, port }
    }),
  )
  const [alive, orphan] = listeners
  if (!alive || !orphan) throw new Error('no listeners')
  expect(await here.leaks()).toMatchObject({ leaks: [] })

  await killWithAgents(killed.child.pid)
  expect(readProcess(orphan.pid)).not.toBeNull()
  const found = await here.leaks()
  expect([...new Set(found.kinds)]).toEqual(expect.arrayContaining(['entry', 'directory', 'process']))
  const leaked = found.leaks.find(({ id }) => id === String(orphan.pid))
  expect(leaked).toMatchObject({ kind: 'process', ports: [orphan.port], remedy: `kill -9 ${orphan.pid}` })
  expect(leaked?.detail).toContain(killed.info.data_dir)
  expect(found.leaks.map(({ id }) => id)).toContain(killed.info.data_dir)
  expect(JSON.stringify(found)).not.toContain(living.info.data_dir)

  const { stdout } = await run(['doctor', '--leaks'], { cwd: here.path, env: here.env })
  expect(stdout).toContain(`✗ process ${orphan.pid}: bun`)
  expect(stdout).toContain('berth doctor --leaks --fix')

  const fixed = await here.leaks('--fix')
  expect(fixed).toMatchObject({ leaks: [] })
  expect(fixed.removed.map(({ id }) => id).sort()).toEqual(found.leaks.map(({ id }) => id).sort())
  expect(readProcess(orphan.pid)).toBeNull()
  expect(existsSync(killed.info.data_dir)).toBe(false)
  expect(readProcess(alive.pid)).not.toBeNull()
  expect((await fetch(`${living.info.base_url}/_berth/ready`)).status).toBe(200)
})

test('a process is found where even the folder of its instance is gone', async () => {
  using here = place()
  await using killed = await serve(['--isolation', 'none'], { env: here.env })
  const server = await killed.server()
  const exec = await killed.run(['exec', server, 'setsid sleep 60 >/dev/null 2>&1 & echo $!'])
  const pid = Number(exec.stdout)
  await killWithAgents(killed.child.pid)
  await run(['list'], { env: here.env })
  await Bun.$`rm -rf ${killed.info.data_dir}`.quiet()
  expect((await here.leaks()).leaks.map(({ id }) => id)).toContain(String(pid))
  expect(await here.leaks('--fix')).toMatchObject({ leaks: [] })
  // A process that is ending has no environment any more, by which it is found, a moment before it is gone.
  await until(() => readProcess(pid) === null, 'the process to be gone')
})

test.skipIf(!canSandbox)(
  'a sandbox is found by its workspace where nothing in it carries a marker',
  async () => {
    using here = place()
    await using killed = await serve([], { cwd: here.path, env: here.env })
    const server = await killed.server()
    await killWithAgents(killed.child.pid)
    const survivor = startSurvivor(join(here.path, '.berth/servers', server, 'workspace'))
    const inside = () =>
      findFamily({ roots: [survivor.pid], sessions: [], marker: '', except: [survivor.pid] })
    await until(() => inside().length === 2, 'it to run')
    const pids = inside()
    const found = await here.leaks()
    const processes = found.leaks.filter(({ kind }) => kind === 'process')
    expect(processes.map(({ id }) => Number(id)).sort()).toEqual(pids.sort())
    expect(processes[0]?.detail).toContain(join(here.path, '.berth'))
    expect((await here.leaks('--fix')).leaks).toEqual([])
    await survivor.exited
    expect(pids.filter((pid) => readProcess(pid) !== null)).toEqual([])
  },
)

test.skipIf(!canSandbox)(
  'an inner bwrap that waits for a killed one is found, where the folder of its instance is gone too',
  async () => {
    using here = place()
    using halted = haltedBwrap(here.path)
    const env = { ...here.env, PATH: `${halted.dir}:${process.env.PATH}` }
    const found = async (cwd: string, ...more: string[]): Promise<Leak[]> => {
      const { stdout } = await run(['doctor', '--leaks', '--json', ...more], { cwd, env: here.env })
      const { leaks, removed } = JSON.parse(stdout)
      return [...leaks, ...removed]
    }
    const killed = start(['serve', '--port', '0', '--isolation', 'bubblewrap'], { cwd: here.path, env })
    await until(() => halted.processes().length === 2, 'both processes of bwrap')
    const [outer = 0, inner = 0] = halted.processes()
    expect((await found(here.path)).map(({ id }) => id)).not.toContain(String(inner))
    killed.kill('SIGKILL')
    await killed.exited
    await until(() => readProcess(outer) === null, 'the outer one to be gone')
    expect(halted.processes()).toEqual([inner])

    const leak = { kind: 'process', id: String(inner), remedy: `kill -9 ${inner}` }
    expect(await found(here.path)).toContainEqual(
      expect.objectContaining({ ...leak, detail: `bwrap, of a server on ${here.path}/.berth` }),
    )
    rmSync(join(here.path, '.berth'), { recursive: true })
    await run(['list'], { env: here.env })
    expect(await found(halted.dir, '--fix')).toContainEqual(
      expect.objectContaining({ ...leak, detail: 'bwrap, of an instance that is gone' }),
    )
    expect(halted.processes()).toEqual([])
  },
)

test('other programs’ processes and folders are left alone, whatever they are called', async () => {
  using here = place()
  // As systemd marks the processes of its services.
  const env = {
    PATH: process.env.PATH ?? '',
    HOME: '/data/servers/srv_x/workspace',
    INVOCATION_ID: 'ab'.repeat(16),
  }
  const service = Bun.spawn(['sleep', '60'], { env, stdio: ['ignore', 'ignore', 'ignore'] })
  try {
    for (const name of ['berth-kept-x', 'berth-ephemeral-young', 'berth-other'])
      mkdirSync(join(here.path, name))
    writeFileSync(join(here.path, 'berth-ephemeral-1.2.3-file'), '')
    expect(await here.leaks('--fix')).toMatchObject({ leaks: [], removed: [] })
    expect(service.exitCode).toBeNull()
    expect(readdirSync(here.path).filter((name) => name.startsWith('berth-')).length).toBe(4)
  } finally {
    service.kill('SIGKILL')
    await service.exited
  }
})

test('what was half made in a data folder is found once no instance is on it; what counts already is left', async () => {
  using here = place()
  const data = join(here.path, '.berth')
  const half = ['snapshots/.new-x', 'servers/srv_x/staging/.berth-abc-0123456789abcdef.tmp', 'swap']
  await using berth = await serve([], { cwd: here.path, env: here.env })
  await run(['wait'], { cwd: here.path, env: here.env })
  for (const name of half) mkdirSync(join(data, name), { recursive: true })
  mkdirSync(join(data, 'snapshots/kept'))
  expect((await here.leaks('--fix')).removed).toEqual([])
  await berth[Symbol.asyncDispose]()
  expect((await here.leaks()).leaks.map(({ id }) => id).sort()).toEqual(
    half.map((name) => join(data, name)).sort(),
  )
  writeFileSync(join(data, 'swap/decided.json'), '{"entries":[]}')
  expect((await here.leaks('--fix')).removed.length).toBe(2)
  expect(existsSync(join(data, 'swap/decided.json'))).toBe(true)
  expect(existsSync(join(data, 'snapshots/kept'))).toBe(true)
})

test('a doctor that was killed amid its trials leaves nothing that stays', async () => {
  using here = place()
  const doctor = Bun.spawn({
    cmd: [
      process.execPath,
      '-e',
      `const { makeTemporary } = require(${JSON.stringify(join(import.meta.dir, '../../src/storage/data-directory.ts'))}); console.log(makeTemporary(process.env.TMPDIR, 'berth-doctor-'))`,
    ],
    env: { PATH: process.env.PATH ?? '', ...here.env },
    stdout: 'pipe',
  })
  const folder = (await doctor.stdout.text()).trim()
  await doctor.exited
  expect(await here.leaks()).toMatchObject({ kinds: ['directory'], leaks: [{ id: folder }] })
  expect(await here.leaks('--fix')).toMatchObject({ leaks: [], removed: [{ id: folder }] })
})

test.skipIf(!existsSync('/dev/shm'))(
  'the heartbeat of a killed instance is kept for the next start, and is left once its directory is gone',
  async () => {
    using here = place()
    const data = join(here.path, 'data')
    await using killed = await serve(['--isolation', 'none', '--data', data], { env: here.env })
    const heartbeats = (): string[] =>
      readdirSync('/dev/shm')
        .filter((name) => name.startsWith('berth-'))
        .map((name) => join('/dev/shm', name))
        .filter((path) => readFileSync(path, 'latin1').endsWith(data))
    const [path = ''] = heartbeats()
    expect(path).not.toBe('')
    process.kill(killed.child.pid, 'SIGKILL')
    await killed.child.exited
    expect((await here.leaks('--data', data)).kinds).not.toContain('file')

    rmSync(data, { recursive: true })
    const { leaks } = await here.leaks()
    // Any berth that starts meanwhile removes it too.
    if (existsSync(path)) expect(leaks).toContainEqual(expect.objectContaining({ kind: 'file', id: path }))
    expect(await here.leaks('--fix')).toMatchObject({ leaks: [] })
    expect(heartbeats()).toEqual([])
  },
)

test('--fix without --leaks is wrong usage', async () => {
  expect(await run(['doctor', '--fix'])).toMatchObject({ exitCode: 2, stdout: '' })
})
