import { startInstance } from './instance.ts'
import { median, ms, print, quantile, samples, times } from './measure.ts'
import { rawClient } from './raw-client.ts'

const ROUNDS = 40
const PER_ROUND = 100
/** Servers that the longer list names. */
const MANY = 40

/** What the check of a key's scope adds to a request: GET /servers/{id} with scoped keys against an account-wide one. */
export async function benchAccess(): Promise<void> {
  await using berth = await startInstance()
  const ids: string[] = []
  for (let n = 0; n < MANY; n++) {
    const { id } = await berth.call('POST', '/servers')
    // Asleep it takes no part in the measurement.
    await berth.call('POST', `/servers/${id}/actions`, { action: 'stop' })
    ids.push(id)
  }
  const keyFor = async (servers: string[]): Promise<string> =>
    (await berth.call('POST', '/keys', { label: 'bench', allowed_server_ids: servers })).key
  const path = `/servers/${ids[0]}`
  using wide = await rawClient(berth.url, await keyFor([]), path)
  // The same once more: how much two equal measurements differ here.
  using again = await rawClient(berth.url, await keyFor([]), path)
  using one = await rawClient(berth.url, await keyFor(ids.slice(0, 1)), path)
  using many = await rawClient(berth.url, await keyFor(ids), path)
  const clients = { wide, again, one, many }
  type Name = keyof typeof clients

  const taken: Record<Name, number[]> = { wide: [], again: [], one: [], many: [] }
  const names = Object.keys(clients) as Name[]
  for (let round = 0; round < ROUNDS; round++) {
    // Each goes first in turn, so that whatever else the machine does falls on all.
    for (const name of [...names.slice(round % 4), ...names.slice(0, round % 4)]) {
      const warm = round === 0 ? 500 : 10
      taken[name].push(median(await samples(PER_ROUND, warm, () => clients[name].send())))
    }
  }
  const base = median(taken.wide)
  const row = (what: string, name: Name) => {
    // Round by round, so that a slow moment of the machine falls out.
    const ratio = quantile(
      taken[name].map((value, round) => value / (taken.wide[round] ?? Number.NaN)),
      0.5,
    )
    const goal = name === 'again' ? {} : { goal: '≤ 1.05 ×', met: ratio <= 1.05 }
    return {
      what,
      measured: ms(median(taken[name])),
      baseline: `account-wide key ${ms(base)}`,
      ratio: times(ratio),
      ...goal,
    }
  }
  print('GET /servers/{id} by what its key reaches, medians of interleaved rounds', [
    row('key for one server', 'one'),
    row(`key for ${MANY} servers`, 'many'),
    row('another account-wide key (noise)', 'again'),
  ])
}
