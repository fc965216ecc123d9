import { expect, setDefaultTimeout, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { NOUNS } from '../../src/cli/nouns/index.ts'
import { serveForTests } from './command.ts'

// A test runs a dozen commands, one after the other.
setDefaultTimeout(60_000)

/**
 * What every noun prints, for people and for programs, held as it is in __snapshots__: one seeded, frozen instance, so
 * that ids and times repeat. The commands of a test build on those of the tests before.
 */
const berth = await serveForTests([
  ...['--rng-seed', '7', '--freeze', '2030-01-01T00:00:00.000Z', '--isolation', 'none'],
  '--allow-local-webhooks',
])

/** Runs command lines, words with spaces in them in single quotes; resolves to what a terminal would show. */
async function transcript(...lines: string[]): Promise<string> {
  const shown: string[] = []
  for (const line of lines) {
    const words = (line.match(/'[^']*'|\S+/g) ?? []).map((word) => word.replaceAll("'", ''))
    const { exitCode, stdout, stderr } = await berth.run(words)
    shown.push(`$ berth ${line}\n${stdout}${stderr.replace(/^(?=.)/gm, '! ')}[exit ${exitCode}]\n`)
  }
  return repeatable(shown.join('\n'))
}

/** Text without what differs from run to run: ports, durations, sizes on disk, the secrets of this instance. */
const repeatable = (text: string): string =>
  text
    .replaceAll(/127\.0\.0\.1:\d+|localhost:\d+/g, 'HOST')
    .replaceAll(/\b(took_ms|waited_ms|offset_ms|ms|bytes|storageUsedGb|timers)":\s*[\d.]+/g, '$1":0')
    .replaceAll(/\d+(\.\d+)?(?=( ms\b| [KM]B\b))/g, '0')
    .replaceAll(/(delivered|pending|failed) +\d+(?= )/g, '$1  0')
    .replaceAll(berth.cwd, 'DIR')
    .replaceAll(/msg_\w+/g, 'msg_ID')
    .replaceAll(/req_\w+/g, 'req_ID')
    .replaceAll(/(sk_live_|whsec_)[\w+/=]+/g, '$1SECRET')
    .replaceAll(/v1,[\w+/=]+/g, 'v1,SIGNATURE')
    .replaceAll(/("?webhook-(?:timestamp|signature)"?: ?)"?[\w,]+"?/g, '$1VALUE')
    .replaceAll(/(Waiting +)\d+/g, '$10')
    .replaceAll(/"schema":\d+/g, '"schema":0')
    .replaceAll(/by \d+ d( \d+ (h|min|s))?/g, 'by SPAN')
    .replaceAll(/ {2,}/g, '  ')

/** The n-th id of a kind that a noun lists, the newest first. */
async function idOf(noun: string, at = 0): Promise<string> {
  const { stdout } = await berth.run([noun, '--json'])
  const [items] = Object.values(JSON.parse(stdout) as Record<string, { id: string }[]>)
  return items?.[at]?.id ?? 'none'
}

test('servers', async () => {
  expect(
    await transcript(
      'servers',
      "servers create --tier medium --task 'the web' --region eu-west",
      'servers create --json',
      'servers list',
      'servers list --json',
    ),
  ).toMatchSnapshot()
  const id = await idOf('servers')
  expect(
    await transcript(
      `servers get ${id}`,
      `servers get ${id} --json`,
      `servers update ${id} --task api --region us-west`,
      `servers stop ${id}`,
      `servers start ${id} --json`,
      `servers restart ${id}`,
      'servers get srv_none',
      `servers delete ${id}`,
      'servers rm srv_none',
    ),
  ).toMatchSnapshot()
})

test('files', async () => {
  const server = await idOf('servers')
  writeFileSync(join(berth.cwd, 'index.html'), '<h1>hello</h1>\n')
  expect(
    await transcript(
      `files list ${server}`,
      `files write ${server} index.html index.html`,
      `files put ${server} a/b.txt index.html --json`,
      `files ls ${server}`,
      `files list ${server} --json`,
      `files read ${server} index.html`,
      `files cat ${server} a/b.txt --json`,
      `files delete ${server} a`,
      `files rm ${server} none`,
    ),
  ).toMatchSnapshot()
})

test('processes', async () => {
  const server = await idOf('servers')
  expect(
    await transcript(
      `processes list --server ${server}`,
      `ps --server ${server}`,
      `processes delete 1 --server ${server}`,
      `processes delete 1 --signal STOP --server ${server}`,
    ),
  ).toMatchSnapshot()
  await berth.run(['exec', server, '--', 'sleep 300 >/dev/null 2>&1 & echo $! > pid'])
  const { stdout: pid } = await berth.run(['exec', server, '--', 'cat pid; rm pid'])
  const listed = await berth.run(['ps', '--server', server])
  for (const words of [
    ['ps', server],
    ['ps', 'list', server],
    ['processes', 'list', server],
  ])
    expect((await berth.run([...words, '-q'])).stdout).toContain(pid.trim())
  expect(listed.stdout).toMatch(/sleeping +\S+ +exec +sleep 300\n/)
  const ended = await berth.run(['processes', 'delete', pid.trim(), '--server', server])
  expect(ended).toMatchObject({ stdout: `${pid.trim()} has ended.\n`, exitCode: 0 })
})

test('usage', async () => {
  const server = await idOf('servers')
  const { stdout: list } = await berth.run(['usage', '--quiet'])
  expect(list).toContain(`${server}\n`)
  const { stdout } = await berth.run(['usage', 'get', server])
  expect(stdout).toMatch(/^Server +srv_\w+\nStatus +running\nCPU +[\d.]+ % of 2\nMemory +\S+ \w+ of 4.3 GB\n/)
  expect(stdout).toMatch(/\nStorage +\S+ \w+ of 20.0 GB\nProcesses +0 of \d+\nPorts +none\nLast used +\S+\n$/)
  const { stdout: json } = await berth.run(['usage', 'get', server, '--json'])
  expect(JSON.parse(json).usage).toMatchObject({ server_id: server, ports: [] })
  const { stdout: account } = await berth.run(['usage', 'account', '--days', '3'])
  expect(account).toMatch(
    /^DAY +SERVER +LABEL +CREDITS .*\n2030-01-01 .*\n\n2030-01: 0 of 1000 credits used, 1000 left\.\n$/,
  )
})

test('terminals', async () => {
  const server = await idOf('servers')
  expect(
    await transcript(
      `terminals --server ${server}`,
      `terminals create 'sleep 300' --name one --columns 100 --rows 30 --server ${server}`,
      `terminals create 'sleep 300' --name one --server ${server}`,
      `terminals create 'sleep 301' --json --server ${server}`,
      `terminals list --server ${server}`,
      `terminals get one --server ${server}`,
      `terminals get one --json --server ${server}`,
      `terminals create 'while read x; do echo "got $x"; done' --name loop --columns 30 --server ${server}`,
      `terminals type loop 'hello there' --key enter --until '^got hello there$' --server ${server}`,
      `terminals type loop again --key enter --until '^got again$' --json --server ${server}`,
      `terminals screen loop --until never --timeout 50ms --server ${server}`,
      `terminals screen loop --quiet 10ms --lines 5 --server ${server}`,
      `terminals type loop --key ctrl-d --until never --server ${server}`,
      `terminals type loop x --server ${server}`,
      `terminals type one --server ${server}`,
      `terminals type one --key nokey --server ${server}`,
      `terminals screen one --until '(' --server ${server}`,
      `terminals delete one --server ${server}`,
      `terminals rm sleep --json --server ${server}`,
      `terminals get none --server ${server}`,
      `terminals create --columns 0 --server ${server}`,
    ),
  ).toMatchSnapshot()
})

test('deployments', async () => {
  expect(await transcript('deployments', 'deploy', 'deployments', 'deployments --json')).toMatchSnapshot()
})

test('keys', async () => {
  const server = await idOf('servers')
  expect(
    await transcript(
      'keys',
      "keys create 'for tests'",
      `keys create scoped --servers ${server} --json`,
      'keys',
    ),
  ).toMatchSnapshot()
  const id = await idOf('keys')
  expect(
    await transcript(
      `keys update ${id} --all`,
      `keys update ${id} --servers ${server}`,
      `keys update ${id} --all --json`,
      `keys update ${id}`,
      `keys delete ${id}`,
      `keys rm ${id}`,
      'keys list --json',
    ),
  ).toMatchSnapshot()
})

test('webhooks and deliveries', async () => {
  expect(
    await transcript(
      'webhooks',
      'deliveries',
      `webhooks create ${berth.info.base_url}/_berth/inbox/mine --events task.created,task.failed`,
      `webhooks create ${berth.info.base_url}/_berth/inbox/other --json`,
      'webhooks list',
      'trigger task.failed',
      'trigger server.created --json',
      'deliveries list --status failed',
    ),
  ).toMatchSnapshot()
  const [webhook, delivery] = await Promise.all([idOf('webhooks'), idOf('deliveries')])
  expect(
    await transcript(
      `deliveries retry ${delivery}`,
      'deliveries show dlv_none',
      `webhooks delete ${webhook}`,
      'webhooks --json',
    ),
  ).toMatchSnapshot()
  // The attempt that was asked for arrives on its own.
  await fetch(`${berth.info.base_url}/_berth/wait?inbox=other&count=3&timeout_ms=10000`, {
    headers: { authorization: `Bearer ${berth.info.admin_token}` },
  })
})

test('inbox and events', async () => {
  expect(
    await transcript(
      'inbox',
      'inbox show mine --limit 1 --json',
      'inbox show none',
      'events --limit 2',
      'events --event task.failed --json',
      'inbox clear mine',
      'inbox clear',
      'inbox clear --all --json',
      'inbox list',
    ),
  ).toMatchSnapshot()
})

test('projects', async () => {
  expect(
    await transcript(
      'projects',
      "projects create --name 'Corner shop' --ephemeral",
      'projects create --name blank --description nothing --json',
      'projects list',
      'projects get corner-shop',
      'projects get blank --json',
      'projects get none',
      "projects update blank --name 'Blank page' --public",
      'projects update blank',
      'projects logs blank',
      'projects init blank',
      'projects open corner-shop',
      'projects cleanup corner-shop',
      'projects cleanup blank',
      'projects rm blank --json',
    ),
  ).toMatchSnapshot()
})

test('secrets', async () => {
  expect(
    await transcript(
      'secrets',
      'secrets set MODE=production REGION=eu',
      'secrets list',
      'secrets --json',
      'secrets unset MODE NONE',
      'secrets unset REGION --json',
      'secrets set 1A=x',
      'secrets list --server srv_none',
    ),
  ).toMatchSnapshot()
})

test('tasks and builds', async () => {
  expect(
    await transcript('tasks', "tasks run 'complete: all is well' --detach", 'builds', 'builds get bld_none'),
  ).toMatchSnapshot()
  const id = await idOf('tasks')
  await berth.run(['tasks', 'events', id, '--follow'])
  expect(
    await transcript(
      'tasks list',
      'tasks --json',
      `tasks get ${id}`,
      `tasks get ${id} --json`,
      `tasks cancel ${id}`,
      `tasks answer ${id} yes`,
      `tasks release ${id}`,
      'tasks get task_none',
    ),
  ).toMatchSnapshot()
})

test('accounts', async () => {
  expect(
    await transcript('accounts', 'accounts create --label worker --budget-cap 12.5', 'accounts list'),
  ).toMatchSnapshot()
  const [id] = JSON.parse((await berth.run(['accounts', '--json'])).stdout)
    .accounts.filter(({ label }: { label: string }) => label === 'worker')
    .map((account: { id: string }) => account.id)
  expect(
    await transcript(
      `accounts update ${id} --credits-used 3 --limits '{"servers":1}'`,
      `accounts update ${id}`,
      `accounts update ${id} --plan default --json`,
      `accounts delete ${id}`,
      `accounts rm ${id}`,
    ),
  ).toMatchSnapshot()
})

test('faults', async () => {
  const server = await idOf('servers')
  expect(
    await transcript(
      'faults',
      'faults add --operation exec.run --error 502 --code compute_backend_error --times 2 --after 1',
      'faults add --delay 0.5s --probability 0.25 --seed 3 --json',
      'faults list',
    ),
  ).toMatchSnapshot()
  const id = JSON.parse((await berth.run(['faults', '--json'])).stdout).faults[0].id
  expect(
    await transcript(
      `faults rm ${id}`,
      `faults delete ${id}`,
      'faults clear',
      `faults server ${server}`,
      `faults server ${server} slow_exec --delay 5ms --times 3`,
      `faults server ${server}`,
      `faults lift ${server} slow_exec`,
      `faults lift ${server} --json`,
    ),
  ).toMatchSnapshot()
})

test('scenarios, fixtures and the clock', async () => {
  writeFileSync(join(berth.cwd, 'scenarios.yaml'), '- match: slow\n  steps: [{ hold: true }]\n')
  expect(
    await transcript(
      'scenarios',
      'scenarios set scenarios.yaml',
      'scenarios list',
      'scenarios --json',
      'scenarios set none.yaml',
      'scenarios clear',
      'fixtures',
      'fixtures --json',
      'clock',
      'clock advance 2h',
      'clock show --json',
      'clock advance never',
      'clock reset',
    ),
  ).toMatchSnapshot()
})

test('templates', async () => {
  expect(await transcript('templates', 'templates --json')).toMatchSnapshot()
})

test('snapshots and reset', async () => {
  expect(
    await transcript(
      'snapshot',
      'snapshot save before',
      'snapshot list --json',
      'snapshot restore before',
      'snapshot restore none',
      'snapshot rm before --json',
      'snapshot delete before',
      'reset',
    ),
  ).toMatchSnapshot()
})

test('options that every command has may be before the noun, before its verb or after it', async () => {
  const data = ['--data', berth.info.data_dir]
  const expected = await berth.run(['servers', 'list', ...data, '--json'])
  expect(expected).toMatchObject({ exitCode: 0, stderr: '' })
  for (const args of [
    [...data, '--json', 'servers', 'list'],
    ['servers', ...data, 'list', '--json'],
    ['servers', '--json', ...data, 'list'],
    ['--json', 'servers', ...data, 'list'],
    ['servers', `--data=${berth.info.data_dir}`, '--json'],
  ])
    expect({ args, ...(await berth.run(args)) }).toEqual({ args, ...expected })
})

test('plain "berth NOUN" is its list, which is also "ls"', async () => {
  const nouns = NOUNS.filter(({ commands }) => commands.some(({ usage }) => /^list\b/.test(usage))).map(
    ({ name }) => name,
  )
  // There is one clock.
  expect(NOUNS.map(({ name }) => name).filter((name) => !nouns.includes(name))).toEqual(['clock'])
  await berth.server()
  // A server's memory is measured anew each time.
  const outcome = async (args: string[]) => {
    const { exitCode, stdout, stderr } = await berth.run(args)
    return { exitCode, stderr, stdout: stdout.replace(/"memory_bytes":\d+/g, '"memory_bytes":0') }
  }
  for (const noun of nouns) {
    const [list, ls, plain] = await Promise.all([
      outcome([noun, 'list', '--json']),
      outcome([noun, 'ls', '--json']),
      outcome([noun, '--json']),
    ])
    expect({ noun, ...list }).toMatchObject({ exitCode: 0, stderr: '' })
    expect({ noun, ls, plain }).toEqual({ noun, ls: list, plain: list })
  }
})

test('create makes what the API can make, for every noun alike, and returns at once', async () => {
  const server = await idOf('servers')
  const created = async (...words: string[]) => {
    const { stdout, stderr, exitCode } = await berth.run([...words, '--json'])
    expect({ words, stderr, exitCode }).toEqual({ words, stderr: '', exitCode: 0 })
    return JSON.parse(stdout)
  }
  expect(await created('deployments', 'create', '--server', server)).toMatchObject({
    url: expect.stringContaining('http://'),
  })
  expect((await created('deployments', 'list', '--server', server)).deployments).toMatchObject([
    { live: true },
  ])
  const { task_id } = await created('tasks', 'create', 'complete: well', '--server', server)
  expect((await created('tasks', 'get', task_id)).task).toMatchObject({ goal: 'complete: well' })
  expect(await created('builds', 'create', 'a page', '--server', server)).toMatchObject({
    build_id: expect.stringContaining('bld_'),
  })
  expect(await created('faults', 'create', '--error', '503', '--operation', 'exec.run')).toMatchObject({
    hits: 0,
  })
  expect(await created('snapshots', 'create', 'kept')).toMatchObject({ name: 'kept' })
  expect(await created('snapshots', 'delete', 'kept')).toMatchObject({ name: 'kept' })
  await berth.run(['secrets', 'set', 'A=1', '--server', server])
  expect(await created('secrets', 'delete', 'A', '--server', server)).toMatchObject({ keys: [] })
})
