import { afterAll, beforeAll, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { ReadyInfo } from '../../src/instance/start.ts'
import { END_SIGNAL } from '../support/compute.ts'
import { processesOf, until } from '../support/processes.ts'
import { type Receiver, receiver } from '../support/receiver.ts'
import { call, type ServeProcess, serve } from '../support/serve.ts'
import { rounds } from '../support/thorough.ts'

/** How often berth is killed. */
const KILLS = rounds({ usually: 20, inCi: 40, withAll: 100 })

/** Credits an hour, so that a second of a running server is one credit. */
const PLAN = JSON.stringify({ credits_per_hour: { small: 3_600 }, monthly_cap: 1_000_000 })

/** Events that are asked for at once in every life. */
const EVENTS = 4

let folder: string
/** The latest one, which a failed test leaves running. */
let berthNow: ServeProcess | undefined
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'berth-crash-'))
})
afterAll(async () => {
  berthNow?.child.kill(END_SIGNAL)
  await berthNow?.child.exited
  await until(() => processesOf(folder).length === 0, 'no process is left')
  rmSync(folder, { recursive: true, force: true })
})

const start = (): ServeProcess => {
  berthNow = serve([
    '--port',
    '0',
    '--data',
    folder,
    '--isolation',
    'none',
    '--allow-local-webhooks',
    '--plan',
    PLAN,
    '--log-level',
    'error',
  ])
  return berthNow
}

const seconds = () => performance.now() / 1_000

async function control(info: ReadyInfo, method: string, path: string, body?: unknown) {
  const headers = { authorization: `Bearer ${info.admin_token}`, 'content-type': 'application/json' }
  const init = body === undefined ? { method, headers } : { method, headers, body: JSON.stringify(body) }
  const response = await fetch(`${info.base_url}/_berth${path}`, init)
  // biome-ignore lint/suspicious/noExplicitAny: a test reads whatever shape it expects
  return (await response.json()) as any
}

/** Emits an event; resolves to its id, or null where berth was gone before it said so. */
const emit = (info: ReadyInfo, n: string): Promise<string | null> =>
  control(info, 'POST', '/events', { event: 'tuning.started', data: { n } }).then(
    ({ id }) => id,
    () => null,
  )

/** The ids under which each event came. */
function idsByEvent({ received }: Receiver): Map<string, Set<string>> {
  const ids = new Map<string, Set<string>>()
  for (const { headers, payload } of received) {
    // The server tells of its restarts, too.
    if (payload.n === undefined) continue
    const known = ids.get(payload.n) ?? new Set()
    ids.set(payload.n, known.add(headers['webhook-id'] ?? ''))
  }
  return ids
}

test(`${KILLS} times kill -9, between commit and delivery and amid deliveries, lose no event that was acknowledged and meter no second twice`, async () => {
  await using quick = await receiver()
  // Amid its answer berth is killed most of the time.
  let came = Promise.withResolvers<void>()
  await using slow = await receiver({
    reply: (response) => {
      came.resolve()
      setTimeout(() => response.end(), 3)
    },
  })
  const acknowledged = new Map<string, string>()
  let killedAmid = 0
  /** Seconds that the server ran and was charged for, between these bounds. */
  const ran = { atLeast: 0, atMost: 0 }

  const began = seconds()
  const first = start()
  const info = await first.ready
  for (const { url } of [quick, slow]) {
    const headers = { authorization: `Bearer ${info.api_key}`, 'content-type': 'application/json' }
    const made = await fetch(`${info.base_url}/webhooks`, {
      method: 'POST',
      headers,
      body: JSON.stringify({ url }),
    })
    expect(made.status).toBe(201)
  }
  const { id } = (await call(info, 'POST', '/servers')).body
  first.child.kill('SIGKILL')
  await first.child.exited
  ran.atMost += seconds() - began

  for (let life = 0; life < KILLS; life++) {
    const spawned = seconds()
    const berth = start()
    const ready = await berth.ready
    // A command runs only where the server does; a restart writes down how long it did.
    const isMetered = life % 4 === 1
    if (isMetered) await call(ready, 'POST', `/servers/${id}/exec`, { command: 'true' })
    const runs = seconds()
    const asked = Array.from({ length: EVENTS }, async (_, n) => {
      const id = await emit(ready, `${life}.${n}`)
      if (id !== null) acknowledged.set(`${life}.${n}`, id)
    })
    // By turns: right at the commit, a moment later, when something has come, and amid what comes.
    came = Promise.withResolvers()
    if (life % 4 === 0) await Promise.race(asked)
    if (life % 4 === 1) await Promise.all(asked)
    if (isMetered) {
      const stillRuns = seconds()
      expect((await call(ready, 'POST', `/servers/${id}/actions`, { action: 'restart' })).status).toBe(200)
      ran.atLeast += stillRuns - runs
    }
    if (life % 4 === 2) await came.promise
    if (life % 4 === 3) await Bun.sleep((life % 20) / 2)
    if (slow.open > 0 || quick.open > 0) killedAmid += 1
    berth.child.kill('SIGKILL')
    await Promise.all([berth.child.exited, ...asked])
    ran.atMost += seconds() - spawned
  }

  const lastBegan = seconds()
  const last = start()
  const final = await last.ready
  const lost = (target: Receiver) => {
    const came = idsByEvent(target)
    return [...acknowledged].filter(([n, id]) => !came.get(n)?.has(id))
  }
  await until(() => lost(quick).length + lost(slow).length === 0, 'all has come', 20_000).catch(() => {})
  expect([lost(quick), lost(slow)]).toEqual([[], []])
  for (const target of [quick, slow]) {
    const changed = [...idsByEvent(target)].filter(([, ids]) => ids.size !== 1)
    expect(changed).toEqual([])
  }
  // What was written is what comes: nothing is made up, and each event is one.
  const { events } = await control(final, 'GET', '/events?limit=100000')
  const written = new Set(events.map((event: { id: string }) => event.id))
  expect(written.size).toBe(events.length)
  expect(quick.received.filter(({ headers }) => !written.has(headers['webhook-id']))).toEqual([])
  expect(acknowledged.size).toBeGreaterThan(KILLS)
  // How often depends on the machine's other work; a few are enough.
  expect(killedAmid).toBeGreaterThan(0)
  const { creditsUsed } = (await call(final, 'GET', `/servers/${id}`)).body.server
  ran.atMost += seconds() - lastBegan
  expect(creditsUsed).toBeLessThanOrEqual(ran.atMost)
  expect(creditsUsed).toBeGreaterThanOrEqual(Math.floor(ran.atLeast))
  last.child.kill('SIGTERM')
  await last.child.exited
}, 180_000)
