import { expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { EVENT_NAMES } from '../../src/resources/events/names.ts'
import { receiver, replyWith } from '../support/receiver.ts'
import { serveForTests } from './command.ts'

const berth = await serveForTests(['--isolation', 'none', '--allow-local-webhooks'])

const json = async (args: string[], stdin?: string) => {
  const options = stdin === undefined ? {} : { stdin: new TextEncoder().encode(stdin) }
  const { exitCode, stdout, stderr } = await berth.run(['trigger', ...args, '--json'], options)
  expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' })
  return JSON.parse(stdout)
}

test('an event is emitted with data of an argument, a file or standard input', async () => {
  const id = expect.stringMatching(/^evt_/)
  const data = { server_id: 'srv_1', n: [1] }
  const text = JSON.stringify(data)
  writeFileSync(join(berth.cwd, 'event.json'), text)
  expect(await json(['deployment.live', '--payload', text])).toMatchObject({
    id,
    event: 'deployment.live',
    data,
  })
  expect(await json(['deployment.live', '--payload', '@event.json'])).toMatchObject({ data })
  expect(await json(['deployment.live', '--payload', '-'], text)).toMatchObject({ data, deliveries: [] })
  expect((await json(['quota.threshold'])).data).toEqual({ credits_used: 800, budget_cap: 1000 })
})

test('it says what became of the deliveries, also of one that failed', async () => {
  await using good = await receiver()
  await using bad = await receiver({ reply: replyWith(503) })
  for (const { url } of [good, bad])
    await berth.run(['webhooks', 'create', url, '--events', 'task.created,task.failed'])
  const { id, deliveries } = await json(['task.failed'])
  expect(good.received.map(({ headers }) => headers['webhook-id'])).toEqual([id])
  expect(deliveries.map((one: { url: string; status: string }) => [one.url, one.status]).sort()).toEqual(
    [
      [good.url, 'delivered'],
      [bad.url, 'pending'],
    ].sort(),
  )
  const { stdout } = await berth.run(['trigger', 'task.created'])
  expect(stdout).toMatch(/^Emitted task\.created: evt_\w+\n\n2 webhooks take it:\nDELIVERY .*\n/)
  expect(stdout).toMatch(/delivered +\d+ +http/)
  expect(stdout).toMatch(/pending +\d+ +http\S+ +The receiver answered with 503\.\n/)
  const nobody = await berth.run(['trigger', 'quota.cap_reached'])
  expect(nobody.stdout).toMatch(/^Emitted quota\.cap_reached: evt_\w+\nNo webhook takes it\./)
})

test('refuses unknown events, data that is not JSON and unknown accounts, and the help lists the events', async () => {
  for (const [args, exitCode, named] of [
    [['server.exploded'], 2, 'server.exploded'],
    [['task.created', '--payload', '{'], 2, 'not valid JSON'],
    [
      ['task.created', '--payload', '{"n":12345678901234567890}'],
      2,
      '--payload, "n": expected a whole number',
    ],
    [['task.created', '--payload', '{"n":1e400}'], 2, 'got 1e400.'],
    [
      ['task.created', '--payload', '{"n":{"a":1,"a":2}}'],
      2,
      '--payload, "n.a" is there twice: name it once.',
    ],
    // Everywhere --data names the data directory; it was the payload here.
    [
      ['task.created', '--data', '{}'],
      2,
      "what the event carries with --payload: berth trigger EVENT --payload '",
    ],
    [['task.created', '--data', '@event.json'], 2, '--payload @event.json'],
    [['task.created', '--payload', '[1]'], 2, 'must be a JSON object'],
    [['task.created', '--payload', '@none.json'], 1, 'There is no file none.json.'],
    [['task.created', '--account', 'acct_none'], 1, '"account_id"'],
    [['task.created', '--data', '/nowhere'], 1, 'No berth runs on /nowhere'],
  ] as const) {
    const outcome = await berth.run(['trigger', ...args])
    expect(outcome).toMatchObject({ exitCode, stdout: '', stderr: expect.stringContaining(named) })
  }
  const { stdout: help } = await berth.run(['trigger', '--help'])
  for (const name of EVENT_NAMES) expect(help).toContain(name)
  const { stdout: offered } = await berth.run(['__complete', 'fish', '--', 'trigger', 'quota.'])
  expect(offered).toBe('words\nquota.threshold\t\nquota.cap_reached\t\n')
})
