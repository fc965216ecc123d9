import { Database as Sqlite } from 'bun:sqlite'
import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { HELD, HOLD, PHASES } from '../support/builds.ts'
import { END_SIGNAL } from '../support/compute.ts'
import { processesOf, until } from '../support/processes.ts'
import { call, type ServeProcess, serve } from '../support/serve.ts'

let folder: string
let berth: ServeProcess
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'berth-builds-'))
})
afterEach(async () => {
  await end(END_SIGNAL)
  await until(() => processesOf(folder).length === 0, 'no process to be left', 20_000)
  rmSync(folder, { recursive: true, force: true })
})

const start = () => {
  const options = ['--isolation', 'none']
  berth = serve(['--port', '0', '--data', folder, '--log-level', 'error', ...options])
  return berth.ready
}

const end = async (signal: 'SIGKILL' | 'SIGTERM') => {
  berth.child.kill(signal)
  await berth.child.exited
}

type Info = Awaited<ReturnType<typeof start>>

/** How often a phase that cannot be held, and is over in no time is tried to be caught. */
const ATTEMPTS = 40

/** The phase of a build that runs, by the database alone; null where none does. */
function phaseOf(id: string): string | null {
  const sqlite = new Sqlite(join(folder, 'berth.db'), { readwrite: true })
  try {
    sqlite.run('PRAGMA busy_timeout = 5000')
    const row = sqlite
      .query<{ status: string; steps: string }, [string]>('SELECT * FROM builds WHERE id = ?')
      .get(id)
    if (row?.status !== 'running') return null
    const steps = JSON.parse(row.steps) as { key: string; status: string }[]
    return steps.find(({ status }) => status === 'running')?.key ?? 'plan'
  } finally {
    sqlite.close()
  }
}

const buildOf = async (info: Info, server: string, id: string) =>
  (await call(info, 'GET', `/servers/${server}/builds/${id}`)).body.build

const logOf = async (info: Info, server: string, id: string): Promise<string[]> =>
  (await call(info, 'GET', `/servers/${server}/builds/${id}/logs`)).body.logs.map(
    ({ text }: { text: string }) => text,
  )

/** Has berth killed while a build is in a phase, and another waits; a phase that was missed is tried again. */
async function killIn(phase: string) {
  for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
    const info = await start()
    const server: string = (await call(info, 'POST', '/servers')).body.id
    const begin = async (goal: string): Promise<string> =>
      (await call(info, 'POST', `/servers/${server}/builds`, { goal })).body.build_id
    const running = await begin(`A landing page\n${HELD[phase] ?? HOLD}`)
    // In the first phases berth is killed before it answers.
    const waiting = begin('A landing page').catch(() => null)
    const isThere = () => {
      const now = phaseOf(running)
      return now !== null && PHASES.indexOf(now) >= PHASES.indexOf(phase)
    }
    while (!isThere()) await new Promise((resolve) => setImmediate(resolve))
    if (phase !== 'plan' && phase !== 'scaffold') await waiting
    await end('SIGKILL')
    const queued = await waiting
    if (phaseOf(running) === phase) return { server, running, queued }
  }
  throw new Error(`no build was in ${phase} in ${ATTEMPTS} attempts`)
}

describe('kill -9 of berth', () => {
  test.each(PHASES)(
    'in %s: the build is over without a URL and says why, and the one that waits goes on',
    async (phase) => {
      const { server, running, queued } = await killIn(phase)
      const info = await start()
      const build = await buildOf(info, server, running)
      expect(build).toMatchObject({ status: 'completed', url: null })
      const states = PHASES.map((_, n) => (n < PHASES.indexOf(phase) ? 'done' : 'pending'))
      expect(build.steps.map(({ status }: { status: string }) => status)).toEqual(states)
      expect((await logOf(info, server, running)).at(-1)).toBe(
        'berth ended unexpectedly while the build ran.',
      )
      const { files } = (await call(info, 'GET', `/servers/${server}/files`)).body
      expect(files).toEqual(expect.arrayContaining(build.artifacts))

      await call(info, 'PUT', `/servers/${server}/files`, { path: 'go', content: '' })
      const next =
        queued ?? (await call(info, 'POST', `/servers/${server}/builds`, { goal: 'x' })).body.build_id
      await until(
        async () => (await buildOf(info, server, next)).status === 'completed',
        'the next build to be over',
        60_000,
      )
      const { url } = await buildOf(info, server, next)
      if (url === null) throw new Error((await logOf(info, server, next)).join('\n'))
      expect((await fetch(url)).status).toBe(200)
      expect((await call(info, 'GET', `/servers/${server}`)).body.server.status).toBe('running')
    },
    120_000,
  )

  test('at any moment, again and again, leaves no server that is building and no build that runs', async () => {
    let info = await start()
    const server: string = (await call(info, 'POST', '/servers')).body.id
    for (let round = 0; round < 10; round += 1) {
      for (const goal of ['A landing page', 'build a todo api']) {
        void call(info, 'POST', `/servers/${server}/builds`, { goal }).catch(() => {})
      }
      await Bun.sleep(round * 25)
      await end('SIGKILL')
      info = await start()
    }
    const all = async () => (await call(info, 'GET', `/servers/${server}/builds`)).body.builds
    await until(
      async () => (await all()).every(({ status }: { status: string }) => status === 'completed'),
      'all builds to be over',
      60_000,
    )
    expect((await call(info, 'GET', `/servers/${server}`)).body.server.status).toBe('running')
    const { build_id } = (await call(info, 'POST', `/servers/${server}/builds`, { goal: 'A landing page' }))
      .body
    await until(
      async () => (await buildOf(info, server, build_id)).status === 'completed',
      'one more',
      60_000,
    )
    const { url } = await buildOf(info, server, build_id)
    if (url === null) throw new Error((await logOf(info, server, build_id)).join('\n'))
    expect((await fetch(url)).status).toBe(200)
  }, 120_000)
})

test('what a build left is looked at when it is known where workspaces are, however long that takes', async () => {
  const { server, running } = await killIn('install')
  // A probe that takes its time, and then lets the next isolation be tried.
  const slow = join(folder, 'slow')
  mkdirSync(slow)
  writeFileSync(join(slow, 'bwrap'), '#!/bin/sh\nsleep 0.5\nexit 1\n', { mode: 0o755 })
  const env = { PATH: `${slow}${delimiter}${process.env.PATH}` }
  berth = serve(['--port', '0', '--data', folder], env)
  const info = await berth.ready
  const { status, artifacts } = await buildOf(info, server, running)
  expect([status, artifacts.includes('index.html')]).toEqual(['completed', true])
}, 120_000)

test('a server that is deleted takes its builds and their logs along, also where berth has just begun', async () => {
  const { server } = await killIn('implement')
  const info = await start()
  expect((await call(info, 'DELETE', `/servers/${server}`)).status).toBe(200)
  const sqlite = new Sqlite(join(folder, 'berth.db'))
  expect(sqlite.query('SELECT id FROM builds').all()).toEqual([])
  sqlite.close()
  const { readdirSync } = await import('node:fs')
  expect(readdirSync(join(folder, 'logs/builds'))).toEqual([])
}, 120_000)

test('SIGTERM ends the build that runs, and the one that waits goes on at the next start', async () => {
  const first = await start()
  const server: string = (await call(first, 'POST', '/servers')).body.id
  const begin = async (goal: string): Promise<string> =>
    (await call(first, 'POST', `/servers/${server}/builds`, { goal })).body.build_id
  const running = await begin(`A landing page\n${HOLD}`)
  const queued = await begin('A landing page')
  await until(() => phaseOf(running) === 'implement', 'the build to be in implement', 30_000)
  const stopping = performance.now()
  await end('SIGTERM')
  expect(performance.now() - stopping).toBeLessThan(30_000)
  const info = await start()
  expect(await buildOf(info, server, running)).toMatchObject({ status: 'completed', url: null })
  expect((await logOf(info, server, running)).at(-1)).toBe('berth was stopped while the build ran.')
  await until(
    async () => (await buildOf(info, server, queued)).status === 'completed',
    'the next build to be over',
    60_000,
  )
  expect((await buildOf(info, server, queued)).url).not.toBeNull()
}, 120_000)
