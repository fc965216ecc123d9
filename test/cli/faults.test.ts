import { expect, test } from 'bun:test'
import { API_OPERATION_IDS } from '../../src/contract/operations.ts'
import { serveForTests } from './command.ts'

const berth = await serveForTests(['--isolation', 'none'])
const server = await berth.server()

const faults = (...args: string[]) => berth.run(['faults', ...args])

const json = (...args: string[]) => berth.json('faults', ...args)

test('a fault is set, applies, is listed with its counts and removed', async () => {
  const flags = ['--operation', 'servers.list', '--error', '503', '--after', '1', '--times', '1']
  const { id, ...made } = await json('add', ...flags, '--message', 'Not now.')
  expect(made).toMatchObject({
    match: { operation: 'servers.list' },
    effect: { error: { status: 503, message: 'Not now.' } },
    after: 1,
    times: 1,
  })
  expect((await berth.run(['servers'])).exitCode).toBe(0)
  expect((await berth.run(['servers'])).stderr).toBe('berth: Not now. (service_unavailable)\n')
  expect((await berth.run(['servers'])).exitCode).toBe(0)
  expect((await json('list')).faults).toMatchObject([{ id, matched: 3, hits: 1 }])
  expect(await json('rm', id)).toMatchObject({ id, deleted: true })
  expect((await faults()).stdout).toBe('No faults. Set one with "berth faults add".\n')
})

test('a command that a fault applies to says how to remove the fault', async () => {
  await faults('add', '--error', '503')
  expect((await berth.run(['servers'])).stderr).toContain('"berth faults clear" removes all faults.')
  expect((await faults('clear')).stdout).toBe('Removed 1 fault.\n')
  expect((await berth.run(['servers'])).exitCode).toBe(0)
})

test('people get sentences and a table', async () => {
  const set = async (...args: string[]) => (await faults('add', ...args)).stdout
  expect(await set('--path', '/servers/*/exec', '--method', 'POST', '--delay', '1.5s')).toMatch(
    /^Set flt_\w+ \(POST \/servers\/\*\/exec: wait 1500 ms\)\.\n$/,
  )
  expect(await set('--disconnect', '--probability', '0.25', '--seed', '7')).toMatch(
    /^Set flt_\w+ \(all: disconnect, seed 7\)\.\n$/,
  )
  await set('--operation', 'exec.run', '--backend-fail', '--times', '2')
  const { stdout } = await faults('list')
  const rows = stdout.split('\n').map((line) => line.replace(/^flt_\w+/, 'ID').replace(/ {2,}/g, ' | '))
  expect(rows).toEqual([
    'ID | REQUESTS | EFFECT | WHEN | MATCHED | STRUCK',
    'ID | POST /servers/*/exec | wait 1500 ms | always | 0 | 0',
    'ID | all | disconnect | always, chance 0.25 (seed 7) | 0 | 0',
    'ID | exec.run | backend fails | 2 times | 0 | 0',
    '',
  ])
  const [id = ''] = /flt_\w+/.exec(stdout) ?? []
  expect((await faults('rm', id)).stdout).toBe(`Removed ${id}; it applied to 0 of 0 requests.\n`)
  expect((await faults('clear')).stdout).toBe('Removed 2 faults.\n')
})

test('a response of any kind, a lost one and one that is cut off are set', async () => {
  const flags = ['--respond', '502', '--content-type', 'text/html', '--header', 'Server: nginx: 1']
  expect((await json('add', ...flags, '--body', '<h1>502</h1>')).effect).toEqual({
    respond: {
      status: 502,
      content_type: 'text/html',
      headers: { Server: 'nginx: 1' },
      body: '<h1>502</h1>',
    },
  })
  const limited = ['--error', '429', '--retry-after', '30', '--header', 'x-left: 0']
  expect((await json('add', ...limited)).effect).toEqual({
    error: { status: 429, retry_after: 30, headers: { 'x-left': '0' } },
  })
  expect((await faults('add', '--lose-response', '--client', 'cli')).stdout).toMatch(
    /^Set flt_\w+ \(from the cli: response lost\)\.\n$/,
  )
  expect((await faults('add', '--truncate', '20')).stdout).toContain('all: cut after 20 bytes')
  const { stdout } = await faults('list')
  expect(stdout).toContain('502 text/html')
  expect((await faults('clear')).stdout).toBe('Removed 4 faults.\n')
})

test('mistakes are reported before or by the instance, and nothing is set', async () => {
  const usage: [string[], string][] = [
    [[], 'Say what happens'],
    [['--disconnect', '--delay', '1s'], 'One fault has one effect'],
    [['--code', 'x'], '--code, --message and --retry-after belong to --error'],
    [['--body', 'x'], '--content-type and --body belong to --respond'],
    [['--disconnect', '--header', 'a: b'], '--header belongs to --error or --respond'],
    [['--respond', '502', '--header', 'nginx'], 'expected a name and a value'],
    [['--truncate', '0'], 'Expected a whole number from 1'],
    [['--delay', 'long'], 'Expected a duration'],
    [['--disconnect', '--probability', '2'], 'Expected a number from 0 to 1'],
  ]
  for (const [args, sentence] of usage) {
    const { exitCode, stderr } = await faults('add', ...args)
    expect([exitCode, stderr]).toEqual([2, expect.stringContaining(sentence)])
  }
  const unknown = await faults('add', '--operation', 'exec.runn', '--disconnect')
  expect([unknown.exitCode, unknown.stderr]).toEqual([1, expect.stringContaining('Did you mean exec.run or')])
  expect((await json('list')).faults).toEqual([])
})

test('something goes wrong inside a server, is listed and lifted', async () => {
  expect((await faults('server', server)).stdout).toBe(`Nothing goes wrong inside ${server}.\n`)
  expect((await faults('server', server, 'slow_exec', '--delay', '50ms', '--times', '2')).stdout).toBe(
    `slow_exec in ${server}: 50 ms for each command, 2 commands left.\n`,
  )
  expect(await json('server', server, 'hang', '--for', '1m')).toMatchObject({ kind: 'hang', for_ms: 60_000 })
  expect((await faults('server', server)).stdout).toMatch(
    /^KIND +HOW\nslow_exec +50 ms .*\nhang +for 60000 ms\n$/,
  )
  expect((await faults('lift', server, 'hang')).stdout).toBe('Lifted hang.\n')
  expect(await json('lift', server)).toEqual({ server_id: server, lifted: ['slow_exec'] })
  expect((await faults('server', server, 'crash')).stdout).toBe(`crash in ${server}: it has happened.\n`)
  const refused = await faults('server', server, 'crash')
  expect([refused.exitCode, refused.stderr]).toEqual([1, expect.stringContaining('sleeps')])
  expect((await faults('server', server, 'fire')).exitCode).toBe(2)
  const empty = await faults('server', server, 'network')
  expect([empty.exitCode, empty.stderr]).toEqual([2, expect.stringContaining('--refuse, --latency TIME')])
})

test('operations, faults, kinds and servers are offered at TAB', async () => {
  const offered = async (...words: string[]): Promise<string[]> => {
    const { stdout } = await berth.run(['__complete', 'fish', '--', 'faults', ...words])
    return stdout
      .trimEnd()
      .split('\n')
      .slice(1)
      .map((line) => line.split('\t')[0] ?? '')
  }
  expect(await offered('add', '--operation', '')).toEqual([...API_OPERATION_IDS])
  expect(await offered('add', '--operation=exec.')).toEqual([
    '--operation=exec.run',
    '--operation=exec.stream',
  ])
  expect(await offered('add', '--method', 'P')).toEqual(['POST', 'PUT', 'PATCH'])
  const { id } = await json('add', '--disconnect', '--path', '/nowhere')
  expect(await offered('rm', '')).toEqual([id])
  expect(await offered('server', 'srv_')).toEqual([server])
  expect(await offered('server', server, 'h')).toEqual(['hang'])
})
