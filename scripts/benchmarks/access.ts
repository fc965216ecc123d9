import { accessToken } from '../../test/support/oauth.ts'
import { startInstance } from './instance.ts'
import { median, ms, print, quantile, samples, times } from './measure.ts'
import { rawClient } from './raw-client.ts'

const ROUNDS = 40
const PER_ROUND = 100
/** Servers that the longer list names. */
const MANY = 40

/**
 * What the check of a credential adds to a request: GET /servers/{id} with scoped keys, and with an access token, against
 * an account-wide key.
 */
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
  const place = { info: { base_url: berth.url, api_key: berth.key } }
  using token = await rawClient(berth.url, await accessToken(place), path)
  const clients = { wide, again, one, many, token }
  type Name = keyof typeof clients

  const taken: Record<Name, number[]> = { wide: [], again: [], one: [], many: [], token: [] }
  const names = Object.keys(clients) as Name[]
  for (let round = 0; round < ROUNDS; round++) {
    // Each goes first in turn, so that whatever else the machine does falls on all.
    for (const name of [...names.slice(round % names.length), ...names.slice(0, round % names.length)]) {
      const warm = round === 0 ? 500 : 10
      taken[name].push(median(await samples(PER_ROUND, warm, () => clients[name].send())))
    }
  }
  const base = median(taken.wide)
  const row = (what: string, name: Name, limit: number | null = 1.05) => {
    // Round by round, so that a slow moment of the machine falls out.
    const ratio = quantile(
      taken[name].map((value, round) => value / (taken.wide[round] ?? Number.NaN)),
      0.5,
    )
    const goal = limit === null ? {} : { goal: `≤ ${limit} ×`, met: ratio <= limit }
    return {
      what,
      measured: ms(median(taken[name])),
      baseline: `account-wide key ${ms(base)}`,
      ratio: times(ratio),
      ...goal,
    }
  }
  print('GET /servers/{id} by its credential, medians of interleaved rounds', [
    row('key for one server', 'one'),
    row(`key for ${MANY} servers`, 'many'),
    row('access token for the whole account', 'token', 1.2),
    row('another account-wide key (noise)', 'again', null),
  ])
}
