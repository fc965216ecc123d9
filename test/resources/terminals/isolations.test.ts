import { expect, setDefaultTimeout, test } from 'bun:test'
import { ISOLATIONS, type Isolation } from '../../../src/config/config.ts'
import { type TestBerth, testBerth } from '../../support/berth.ts'
import { until } from '../../support/processes.ts'
import { TestViewer } from '../../support/viewer.ts'

setDefaultTimeout(30_000)

/** Starts a berth with an isolation; null where this machine or user does not have it. */
async function berthWith(isolation: Isolation): Promise<TestBerth | null> {
  try {
    return await testBerth({ flags: { isolation } })
  } catch (error) {
    console.error(`SKIP terminals under ${isolation}: ${String(error).split('\n')[0]}`)
    return null
  }
}

// Others on this machine may run these tests too, and some isolations show their processes.
const nap = 10_000_000 + process.pid

// `none` is always to be had.
test.each([...ISOLATIONS])(
  '%s has terminals: a shell with job control, keys, a size, a viewer, and an end that leaves nothing',
  async (isolation) => {
    const started = await berthWith(isolation)
    if (started === null) return
    await using berth = started
    const server = await berth.server({ task: 'shop' })
    const { body, status } = await berth.call('POST', `/servers/${server}/terminals`, {})
    expect([status, body.message]).toEqual([201, undefined])
    const path = `/servers/${server}/terminals/${body.terminal.id}`
    const type = async (request: object) => {
      const response = await berth.call('POST', `${path}/input`, request)
      expect(response.status).toBe(200)
      return response.body.screen
    }
    await berth.call('GET', `${path}/screen?until=${encodeURIComponent('[#$] $')}`)
    const viewer = await TestViewer.attach(berth, `${path}/attach?columns=70&rows=20`)
    const until70 = { text: 'stty size', keys: ['enter'], until: '^20 70$' }
    expect(await type(until70)).toMatchObject({ outcome: 'matched', columns: 70, rows: 20 })
    // Job control takes a controlling terminal of its own. The shell gives it to a job after it has printed the job's command.
    const inFront = `ps -o stat= -p $(pgrep -f "^sleep ${nap}1$") | grep -q "^S.*[+]"`
    const isInFront = async () => (await berth.exec(server, inFront)).exitCode === 0
    await type({ text: `sleep ${nap}1`, keys: ['enter'] })
    await until(isInFront, 'the job has the terminal')
    expect(await type({ keys: ['ctrl-z'], until: 'Stopped' })).toMatchObject({ outcome: 'matched' })
    await type({ text: 'fg', keys: ['enter'], until: `^sleep ${nap}1$` })
    await until(isInFront, 'the job has the terminal again')
    expect(await type({ keys: ['ctrl-c'], until: '[#$] $' })).toMatchObject({ outcome: 'matched' })
    await type({ text: `sleep ${nap}2 & echo "in $((1+1))"`, keys: ['enter'], until: '^in 2$' })
    await viewer.shows('in 2')
    await berth.call('DELETE', path)
    expect((await viewer.closed).code).toBe(4006)
    const isGone = async () => (await berth.exec(server, `pgrep -f "^sleep ${nap}[12]$"`)).exitCode === 1
    await until(isGone, 'the end of what ran on the terminal')
  },
)
