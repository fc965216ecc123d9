import autocannon from 'autocannon'
import { readLine, startInstance } from './instance.ts'
import { median, print, times } from './measure.ts'

const ROUNDS = 5
const SECONDS = 2
const CONNECTIONS = 32

/** GET /servers with ten servers against a bare Bun.serve that answers the same bytes. */
export async function benchThroughput(): Promise<void> {
  await using berth = await startInstance()
  for (let n = 0; n < 10; n++) await berth.call('POST', '/servers')
  const list = JSON.stringify(await berth.call('GET', '/servers'))

  const program = `const list = ${JSON.stringify(list)}
    const headers = { 'content-type': 'application/json' }
    const server = Bun.serve({ port: 0, fetch: () => new Response(list, { headers }) })
    console.log(server.port)`
  const bare = Bun.spawn([process.execPath, '-e', program], { stdin: 'ignore', stdout: 'pipe' })
  const bareUrl = `http://127.0.0.1:${await readLine(bare.stdout)}/`

  const rates = { berth: [] as number[], bare: [] as number[] }
  for (let round = 0; round < ROUNDS; round++) {
    rates.bare.push(await requestRate(bareUrl, berth.key))
    rates.berth.push(await requestRate(`${berth.url}/servers`, berth.key))
  }
  bare.kill()
  await bare.exited

  const [measured, baseline] = [median(rates.berth), median(rates.bare)]
  print(`GET /servers, ten servers, ${CONNECTIONS} connections (autocannon)`, [
    {
      what: 'requests a second',
      measured: measured.toFixed(0),
      baseline: `bare Bun.serve, same bytes: ${baseline.toFixed(0)}`,
      ratio: times(measured / baseline),
      goal: '≥ 0.40 ×',
      met: measured / baseline >= 0.4,
    },
  ])
}

async function requestRate(url: string, key: string): Promise<number> {
  const headers = { authorization: `Bearer ${key}` }
  const result = await autocannon({ url, headers, connections: CONNECTIONS, duration: SECONDS })
  if (result.non2xx + result.errors > 0)
    throw new Error(`${url}: ${result.non2xx} refusals, ${result.errors} errors`)
  return result.requests.average
}
