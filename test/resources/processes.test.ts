import { expect, setDefaultTimeout, test } from 'bun:test'
import { ISOLATIONS } from '../../src/config/config.ts'
import { type TestBerth, testBerth } from '../support/berth.ts'
import { until } from '../support/processes.ts'

setDefaultTimeout(30_000)

interface Shown {
  pid: number
  command: string
  ports: number[]
  started_at: string
  belongs_to: { kind: string; id: string | null } | null
}

const processesOf = async (berth: TestBerth, serverId: string): Promise<Shown[]> =>
  (await berth.call('GET', `/servers/${serverId}/processes`)).body.processes

/** Resolves to the process whose command line contains a text, when it runs. */
async function shown(berth: TestBerth, serverId: string, part: string): Promise<Shown> {
  let one: Shown | undefined
  await until(async () => {
    one = (await processesOf(berth, serverId)).find(({ command }) => command.includes(part))
    return one !== undefined
  }, `${part} runs`)
  return one as Shown
}

test.each([...ISOLATIONS])(
  '%s shows what runs on a server, its ports and what started it',
  async (isolation) => {
    const started = await testBerth({ flags: { isolation } }).catch((error) => {
      console.error(`SKIP processes under ${isolation}: ${String(error).split('\n')[0]}`)
      return null
    })
    if (started === null) return
    await using berth = started
    const server = await berth.server()
    const listener = 'Bun.serve({ hostname: "127.0.0.1", port: 0, fetch: () => new Response("x") })'
    await berth.exec(server, `bun -e '${listener}' >/dev/null 2>&1 & sleep 1241 >/dev/null 2>&1 &`)
    const command = { command: 'sleep 1242' }
    const { terminal } = (await berth.call('POST', `/servers/${server}/terminals`, command)).body
    const goal = { goal: 'run: sleep 1243' }
    const task = (await berth.call('POST', `/servers/${server}/tasks`, goal)).body.task_id
    expect((await shown(berth, server, 'sleep 1241')).belongs_to).toEqual({ kind: 'exec', id: null })
    expect((await shown(berth, server, 'sleep 1242')).belongs_to).toEqual({
      kind: 'terminal',
      id: terminal.id,
    })
    expect((await shown(berth, server, 'sleep 1243')).belongs_to).toEqual({ kind: 'task', id: task })
    const listens = async () => (await shown(berth, server, 'Bun.serve')).ports.length === 1
    await until(listens, 'its port is shown')
    // As a person calls it, not as the executable that berth has for it.
    await berth.exec(
      server,
      `PATH=\${PATH##*:}:/bin; bun -e 'setInterval(() => "own", 1e6)' >/dev/null 2>&1 &`,
    )
    expect((await shown(berth, server, '"own"')).command).toContain('bun -e setInterval')
  },
)

test('the apps of a project and of a deployment show whose they are', async () => {
  await using berth = await testBerth()
  const server = await berth.server()
  const project = (await berth.call('POST', `/servers/${server}/projects`, { template: 'bun-api' })).body
  const files = `/servers/${server}/files`
  const app = 'Bun.serve({ port: process.env.PORT, fetch: () => new Response("x") })'
  await berth.call('PUT', files, { path: 'berth.json', content: '{"start": "bun deployed.ts"}' })
  await berth.call('PUT', files, { path: 'deployed.ts', content: app })
  expect((await berth.call('POST', `/servers/${server}/deployments`)).status).toBe(201)
  expect((await shown(berth, server, 'deployed.ts')).belongs_to).toEqual({ kind: 'deployment', id: null })
  await berth.control('GET', `/wait?project=${project.id}&until=ready`)
  const owners = (await processesOf(berth, server)).map(({ belongs_to: owner }) => owner)
  expect(owners).toContainEqual({ kind: 'project', id: project.id })
})

test('a sleeping server has no processes and is not woken; looking does not keep a server awake', async () => {
  await using berth = await testBerth({ flags: { 'idle-timeout': '10m' } })
  const server = await berth.server()
  await berth.exec(server, 'sleep 1244 >/dev/null 2>&1 &')
  await berth.control('POST', '/clock', { advance: '6m' })
  expect(await processesOf(berth, server)).toHaveLength(1)
  await berth.control('POST', '/clock', { advance: '6m' })
  expect((await berth.call('GET', `/servers/${server}`)).body.server.status).toBe('sleeping')
  expect(await processesOf(berth, server)).toEqual([])
  const { status, body } = await berth.call('DELETE', `/servers/${server}/processes/2`)
  expect([status, body.error]).toEqual([404, 'not_found'])
  expect((await berth.call('GET', `/servers/${server}`)).body.server.status).toBe('sleeping')
})

test('a process ends by TERM, or by the signal of the query; a process of another server is not found', async () => {
  await using berth = await testBerth()
  const server = await berth.server()
  await berth.exec(server, `sleep 1245 & sh -c 'trap "" HUP; sleep 1246' &`)
  const path = `/servers/${server}/processes`
  const { pid } = await shown(berth, server, 'sleep 1245')
  const ended = await berth.call('DELETE', `${path}/${pid}`)
  expect([ended.status, ended.body]).toEqual([200, { pid, signal: 'TERM', ended: true }])
  const stubborn = await shown(berth, server, 'trap')
  const hung = await berth.call('DELETE', `${path}/${stubborn.pid}?signal=HUP`)
  expect(hung.body).toEqual({ pid: stubborn.pid, signal: 'HUP', ended: false })
  expect((await berth.call('DELETE', `${path}/${stubborn.pid}?signal=KILL`)).body.ended).toBe(true)
  for (const wrong of [pid, 1, 0, -1, 'x', '2x', 99999999999, process.pid]) {
    expect([wrong, (await berth.call('DELETE', `${path}/${wrong}`)).status]).toEqual([wrong, 404])
  }
  const { status, body } = await berth.call('DELETE', `${path}/${pid}?signal=STOP`)
  expect([status, body.message]).toEqual([400, expect.stringContaining('TERM, KILL, INT, HUP')])
})

test('times of start follow the clock of the instance', async () => {
  await using berth = await testBerth()
  const server = await berth.server()
  await berth.exec(server, 'sleep 1247 >/dev/null 2>&1 &')
  await berth.control('POST', '/clock', { set: '2031-01-01T00:00:00.000Z' })
  const [process] = await processesOf(berth, server)
  expect(process?.started_at).toStartWith('2030-12-31T23:5')
})
