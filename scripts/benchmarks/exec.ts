import { startInstance } from './instance.ts'
import { median, ms, print, quantile, samples, time, times } from './measure.ts'

const ROUNDS = 10
const PER_ROUND = 100

/** exec of `true` over HTTP against a bare spawn; provisioning; fifty servers at once. */
export async function benchExec(): Promise<void> {
  await using berth = await startInstance()
  const { id } = await berth.call('POST', '/servers')
  const exec = () => berth.call('POST', `/servers/${id}/exec`, { command: 'true' })
  const bare = () => Bun.spawn(['sh', '-c', 'true'], { stdio: ['ignore', 'ignore', 'ignore'] }).exited

  const taken = { exec: [] as number[], bare: [] as number[] }
  // In turns, so that whatever else the machine does falls on both.
  for (let round = 0; round < ROUNDS; round++) {
    taken.bare.push(...(await samples(PER_ROUND, round === 0 ? 50 : 5, bare)))
    taken.exec.push(...(await samples(PER_ROUND, round === 0 ? 50 : 5, exec)))
  }
  const rows = [
    { name: 'median', share: 0.5 },
    { name: 'p99', share: 0.99 },
  ].map(({ name, share }) => {
    const measured = quantile(taken.exec, share)
    const baseline = quantile(taken.bare, share)
    return {
      what: `exec of true over HTTP, ${name}`,
      measured: ms(measured),
      baseline: `Bun.spawn of sh -c true ${ms(baseline)}`,
      ratio: times(measured / baseline),
      goal: '≤ 1.60 ×',
      met: measured / baseline <= 1.6,
    }
  })

  const made: string[] = []
  const provision = async () => {
    const server = await berth.call('POST', '/servers')
    made.push(server.id)
    await berth.call('POST', `/servers/${server.id}/exec`, { command: 'true' })
  }
  const provisioning = median(await samples(20, 3, provision))
  const fifty = await time(async () => {
    const servers = await Promise.all(Array.from({ length: 50 }, () => berth.call('POST', '/servers')))
    made.push(...servers.map((server: { id: string }) => server.id))
  })
  for (const server of made) await berth.call('DELETE', `/servers/${server}`)

  print(`Commands (isolation ${berth.isolation})`, [
    ...rows,
    {
      what: 'POST /servers → first command done, median',
      measured: ms(provisioning),
      goal: '≤ 25 ms',
      met: provisioning <= 25,
    },
    {
      what: 'fifty servers at once, all running',
      measured: ms(fifty),
      goal: '≤ 1000 ms',
      met: fifty <= 1000,
    },
  ])
}
