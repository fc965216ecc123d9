import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { KeyedInfo } from '../support/berth.ts'
import { projectPorts } from '../support/ports.ts'
import { processesOf } from '../support/processes.ts'
import type { Outcome } from '../support/rebinding-machine.ts'
import { command, NO_SPARE_SERVERS } from '../support/serve.ts'

const UNSHARE = ['unshare', '--user', '--map-root-user', '--net', '--mount', '--kill-child']
const env = { ...process.env, PATH: `${process.env.PATH}:/usr/sbin:/sbin` }
const missing = ['unshare', 'ip', 'mount', 'git', 'ssh', 'openssl'].find(
  (program) => Bun.which(program, { PATH: env.PATH }) === null,
)
const hasMachines =
  missing === undefined &&
  Bun.spawnSync([...UNSHARE, 'sh', '-c', 'mount --make-rprivate / && ip link set lo up'], {
    env,
    stdout: 'ignore',
    stderr: 'ignore',
  }).exitCode === 0

if (!hasMachines) {
  console.error(`SKIP names that change their address: ${missing ?? 'no network namespace can be made here'}`)
}

describe.skipIf(!hasMachines)('a name that leads elsewhere from one look-up to the next', () => {
  let child: Bun.Subprocess<'pipe', 'pipe', 'inherit'>
  let lines: AsyncIterator<string>
  let info: KeyedInfo
  let server: string
  const data = mkdtempSync(join(tmpdir(), 'berth-test-'))

  beforeAll(async () => {
    const machine = join(import.meta.dir, '../support/rebinding-machine.ts')
    const options = ['--json', '--port', '0', '--data', data, '--isolation', 'none', ...NO_SPARE_SERVERS]
    const serve = [...command, 'serve', ...options, '--project-ports', projectPorts()]
    child = Bun.spawn([...UNSHARE, process.execPath, machine, ...serve], {
      env,
      stdin: 'pipe',
      stdout: 'pipe',
      stderr: 'inherit',
    })
    lines = linesOf(child.stdout)
    info = JSON.parse((await lines.next()).value)
    server = (await call('POST', '/servers', {})).body.id
  })
  afterAll(async () => {
    child?.stdin.end()
    expect(await child?.exited).toBe(0)
    expect(processesOf(data)).toEqual([])
    rmSync(data, { recursive: true })
  })

  const step = async (token: string, method: string, path: string, body?: unknown): Promise<Outcome> => {
    child.stdin.write(`${JSON.stringify({ token, method, path, body })}\n`)
    child.stdin.flush()
    return JSON.parse((await lines.next()).value)
  }
  const call = (method: string, path: string, body?: unknown) => step(info.api_key, method, path, body)
  const control = (method: string, path: string, body?: unknown) =>
    step(info.admin_token, method, `/_berth${path}`, body)

  /** Fetches the code of a project. Returns its log, and where connections went. */
  const fetchCode = async (source: object): Promise<{ log: string; connections: readonly string[] }> => {
    const { status, body } = await call('POST', `/servers/${server}/projects`, { name: 'app', source })
    expect([status, body]).toEqual([201, expect.anything()])
    const { connections } = await control('GET', `/wait?project=${body.id}&until=failed`)
    const { logs } = (await call('GET', `/projects/${body.id}/logs`)).body
    await call('DELETE', `/projects/${body.id}`)
    return { log: logs.map(({ text }: { text: string }) => text).join('\n'), connections }
  }

  const ONCE = 'after-1-127-0-0-1'

  test.each([
    ['git', `https://${ONCE}-g1.names.example/a.git`, 443],
    ['git', `https://${ONCE}-g2.names.example./a.git`, 443],
    ['git', `https://alias-${ONCE}-g3.names.example/a.git`, 443],
    ['git', `ssh://git@${ONCE}-g4.names.example/a.git`, 22],
    ['git', `ssh://git@${ONCE}-g5.names.example:6379/a.git`, 6379],
    ['git', `git@${ONCE}-g6.names.example:a.git`, 22],
    ['git', 'https://after-1-169-254-169-254-g7.names.example/a.git', 443],
    ['archive', `https://${ONCE}-a1.names.example/a.zip`, 443],
    ['archive', `https://${ONCE}-a2.names.example./a.zip`, 443],
    ['archive', `https://redirect.names.example/?to=https://${ONCE}-a3.names.example/a.zip`, 443],
  ])('leads code of type %s, %s, to the address that was checked', async (type, url, port) => {
    const { connections } = await fetchCode({ type, url })
    expect(connections.length).toBeGreaterThan(0)
    expect(new Set(connections)).toEqual(new Set([`93.184.216.34:${port}`]))
  })

  test.each([
    ['git', 'https://mixed-g.names.example/a.git'],
    ['git', 'git@mixed-g.names.example:a.git'],
    ['archive', 'https://mixed-a.names.example/a.zip'],
    ['archive', 'https://alias-mixed-a.names.example/a.zip'],
  ])('with an inner address among its addresses leads code of type %s, %s, nowhere', async (type, url) => {
    expect(await fetchCode({ type, url })).toEqual({
      log: expect.stringContaining('10.0.0.5, which is not one (private)'),
      connections: [],
    })
  })

  test('leads an archive nowhere if it has turned private at a redirect', async () => {
    const name = 'after-0-10-0-0-5-r.names.example'
    const url = `https://redirect.names.example/?to=https://${name}/a.zip`
    const { log, connections } = await fetchCode({ type: 'archive', url })
    expect(log).toContain('10.0.0.5, which is not one (private)')
    expect(connections).toEqual(['93.184.216.34:443'])
  })

  /** Delivers an event to a new webhook. Returns the attempt, and where connections went. */
  const deliver = async (url: string) => {
    const { status, body } = await call('POST', '/webhooks', { url })
    expect([status, body]).toEqual([201, expect.anything()])
    const event = (await control('POST', '/events', { event: 'server.created' })).body
    const { connections } = await control('GET', `/wait?deliveries=${event.id}`)
    const { deliveries } = (await control('GET', `/deliveries?webhook_id=${body.id}`)).body
    await call('DELETE', `/webhooks/${body.id}`)
    return { attempt: deliveries[0].attempts[0], connections }
  }

  test.each([
    ['at the connection', 'https://after-2-127-0-0-1-w1.names.example/'],
    ['at the connection', 'https://after-2-10-0-0-5-w2.names.example./'],
    ['at the connection', 'https://alias-after-2-169-254-169-254-w3.names.example/'],
  ])('%s leads a webhook, %s, to the address that was checked', async (_when, url) => {
    const { attempt, connections } = await deliver(url)
    expect(attempt.status).toBe(404)
    expect(connections).toEqual(['93.184.216.34:443'])
  })

  test('that is of this machine itself, at a public address, is refused to webhooks, and leads code nowhere', async () => {
    const { status, body } = await call('POST', '/webhooks', { url: 'https://own.names.example/' })
    expect([status, body.message]).toEqual([400, expect.stringContaining('93.184.216.35')])
    const { connections } = await fetchCode({ type: 'archive', url: 'https://own.names.example/a.zip' })
    expect(connections).toEqual([])
  })

  test('after its creation leads a webhook nowhere', async () => {
    const { attempt, connections } = await deliver('https://after-1-169-254-169-254-w4.names.example/')
    expect(attempt.error).toContain('169.254.169.254, which is not a public address')
    expect(connections).toEqual([])
  })
})

/** Yields the lines of a stream. */
async function* linesOf(stream: ReadableStream<Uint8Array>): AsyncGenerator<string, string> {
  const decoder = new TextDecoder()
  let text = ''
  for await (const chunk of stream) {
    text += decoder.decode(chunk, { stream: true })
    for (let at = text.indexOf('\n'); at !== -1; at = text.indexOf('\n')) {
      yield text.slice(0, at)
      text = text.slice(at + 1)
    }
  }
  throw new Error(`the machine ended: ${text}`)
}
