import autocannon from 'autocannon'
import { type Instance, startInstance } from './instance.ts'
import { median, print, times } from './measure.ts'

const PAIRS = 5
const ROUNDS = 4
const SECONDS = 1
const CONNECTIONS = 32

/** What is sent over and over. */
interface Load {
  what: string
  method: 'GET' | 'PATCH'
  path: string
  body?: string
}

/** What the journal costs: requests a second of instances with it against ones without, in rounds that take turns. */
export async function benchJournal(): Promise<void> {
  const measured = LOADS.map((load) => ({ load, on: [] as number[], off: [] as number[] }))
  // Several of each, since two processes of the same program differ by more than what is measured.
  for (let pair = 0; pair < PAIRS; pair++) {
    await using on = await startInstance()
    await using off = await startInstance(undefined, ['--journal-size', '0'])
    for (const { load, ...rates } of measured) await compare(load, { on, off }, rates)
  }
  for (const { load, on, off } of measured) {
    const ratio = median(on) / median(off)
    print(`${load.what} with the journal, medians of ${on.length} rounds on ${PAIRS} pairs of instances`, [
      {
        what: 'requests a second',
        measured: median(on).toFixed(0),
        baseline: `without: ${median(off).toFixed(0)}`,
        ratio: times(ratio),
        goal: '≥ 0.95 ×',
        met: ratio >= 0.95,
      },
    ])
  }
}

const body = JSON.stringify({ task: 'Keep the shop open', region: 'us-east' })

const LOADS: readonly Load[] = [
  { what: 'GET /servers, ten servers', method: 'GET', path: '/servers' },
  { what: 'PATCH /servers/{serverId}', method: 'PATCH', path: '/servers/{serverId}', body },
]

async function compare(
  load: Load,
  instances: Record<'on' | 'off', Instance>,
  rates: Record<'on' | 'off', number[]>,
): Promise<void> {
  const ids = { on: await firstServer(instances.on), off: await firstServer(instances.off) }
  for (const name of ['on', 'off'] as const) await requestRate(instances[name], load, ids[name])
  for (let round = 0; round < ROUNDS; round++) {
    // Each goes first in turn, so that whatever else the machine does falls on both.
    for (const name of round % 2 === 0 ? (['on', 'off'] as const) : (['off', 'on'] as const)) {
      rates[name].push(await requestRate(instances[name], load, ids[name]))
    }
  }
}

/** The first of ten servers, which are made where there are none; all of them sleep. */
async function firstServer(berth: Instance): Promise<string> {
  const { servers } = await berth.call('GET', '/servers')
  if (servers.length > 0) return servers[0].id
  for (let n = 0; n < 10; n++) {
    const { id } = await berth.call('POST', '/servers')
    await berth.call('POST', `/servers/${id}/actions`, { action: 'stop' })
  }
  return firstServer(berth)
}

async function requestRate(
  { url, key }: Instance,
  { method, path, body }: Load,
  id: string,
): Promise<number> {
  const target = `${url}${path.replace('{serverId}', id)}`
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
  const result = await autocannon({
    url: target,
    method,
    headers,
    ...(body === undefined ? {} : { body }),
    connections: CONNECTIONS,
    duration: SECONDS,
  })
  if (result.non2xx + result.errors > 0)
    throw new Error(`${target}: ${result.non2xx} refusals, ${result.errors} errors`)
  // Its own average counts whole seconds, of which a run this short has one or two.
  return result.requests.total / result.duration
}
