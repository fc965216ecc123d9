import { afterAll, beforeAll, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { END_SIGNAL } from '../support/compute.ts'
import { processesOf, until } from '../support/processes.ts'
import { call, type ServeProcess, serve } from '../support/serve.ts'
import { rounds } from '../support/thorough.ts'

/** How often berth is killed while a server runs. */
const ROUNDS = rounds({ usually: 6, inCi: 8, withAll: 20 })
/** Credits an hour, so that a second is one credit. */
const PLAN = JSON.stringify({ credits_per_hour: { small: 3_600 }, monthly_cap: 1_000_000 })
/** What one kill may lose: the time between two heartbeats, and that of the write. */
const LOST_AT_MOST_S = 1.25

let folder: string
let berth: ServeProcess | undefined
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'berth-kills-'))
})
afterAll(async () => {
  berth?.child.kill(END_SIGNAL)
  await berth?.child.exited
  await until(() => processesOf(folder).length === 0, 'no process is left')
  rmSync(folder, { recursive: true, force: true })
})

async function start() {
  berth = serve(['--port', '0', '--data', join(folder, 'data'), '--plan', PLAN])
  return { berth, info: await berth.ready }
}

const seconds = () => performance.now() / 1_000

test(`${ROUNDS} kills while a server runs lose less than a second each, and charge none twice`, async () => {
  let id = ''
  let atLeast = 0
  let atMost = 0
  let before = 0
  for (let round = 0; round <= ROUNDS; round++) {
    const spawned = seconds()
    const { berth, info } = await start()
    if (round === 0) id = (await call(info, 'POST', '/servers')).body.id
    // A command runs only where the server does.
    const awake = await call(info, 'POST', `/servers/${id}/exec`, { command: 'true' })
    expect(awake.status).toBe(200)
    const running = seconds()
    const found = (await call(info, 'GET', `/servers/${id}`)).body.server.creditsUsed
    expect(found).toBeGreaterThanOrEqual(Math.max(before, atLeast - 1))
    expect(found).toBeLessThanOrEqual(atMost + (seconds() - spawned))
    before = found
    if (round === ROUNDS) break
    // At any moment within two heartbeats and more, each round in a part of its own, so that some are long in every run.
    await Bun.sleep(((round + Math.random()) / ROUNDS) * 2_400)
    atLeast += Math.max(0, seconds() - running - LOST_AT_MOST_S)
    berth.child.kill('SIGKILL')
    await berth.child.exited
    atMost += seconds() - spawned
  }
  expect(atLeast).toBeGreaterThan(1)
}, 120_000)
