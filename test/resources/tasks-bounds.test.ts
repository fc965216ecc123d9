import { afterEach, beforeEach, expect, test } from 'bun:test'
import { Outbox } from '../../src/resources/events/outbox.ts'
import { events } from '../../src/resources/events/table.ts'
import { followTranscript } from '../../src/resources/tasks/follow.ts'
import { TaskRecords } from '../../src/resources/tasks/records.ts'
import type { TaskRow } from '../../src/resources/tasks/table.ts'
import { Transcript } from '../../src/resources/tasks/transcript.ts'
import { createIds } from '../../src/runtime/ids.ts'
import { Masks } from '../../src/runtime/masks.ts'
import { seededRandom } from '../../src/runtime/random.ts'
import { RequestContext } from '../../src/runtime/request-context.ts'
import { World } from './accounts/world.ts'

let world: World
let records: TaskRecords
let row: TaskRow
let masks: Masks
let transcript: Transcript
beforeEach(() => {
  world = new World(Date.UTC(2030, 0, 1))
  const { clock, metering, changes } = world
  const { queries } = world.database
  const ids = createIds(clock, (prefix) => seededRandom(7, prefix))
  const outbox = new Outbox({ requests: new RequestContext(), queries, clock, ids, deleteOld: null })
  records = new TaskRecords({ queries, clock, ids, outbox, metering, changes, recorder: null })
  world.account('acct_a', 100)
  world.server('srv_a', 'acct_a', 'small')
  row = records.add('acct_a', 'srv_a', 'x')
  masks = new Masks()
  transcript = new Transcript(row.id, records, masks)
})
afterEach(() => world[Symbol.dispose]())

const message = (text: string) => ({ type: 'message', text }) as const

test('a transcript takes 20,000 events, says that it is full, and goes on telling of the task', () => {
  world.database.queries.transaction(() => {
    for (let n = 1; n <= 20_100; n += 1) transcript.report(message(`${n}`))
  })
  transcript.add({ type: 'question', question: 'Still there?' })
  transcript.report({ type: 'notice', text: 'left out' })
  transcript.add({ type: 'status', status: 'completed', result: 'x' })
  const kept = records.listEvents(row.id, 19_999)
  expect(kept.map(({ seq, type }) => [seq, type])).toEqual([
    [20_000, 'message'],
    [20_001, 'notice'],
    [20_002, 'question'],
    [20_003, 'status'],
  ])
  expect(kept[1]).toMatchObject({ text: expect.stringContaining('full') })
})

test('a transcript takes 32 Mi characters, and each text in it 256 Ki', () => {
  const long = 'x'.repeat(300 * 1024)
  for (let n = 1; n <= 200; n += 1) transcript.report(message(long))
  const kept = records.listEvents(row.id, 0)
  expect(kept.length).toBe(130)
  expect(kept[1]).toMatchObject({ text: `${'x'.repeat(256 * 1024)}…` })
  expect(kept.at(-1)?.type).toBe('notice')
}, 120_000)

test('a secret in a message that is shown in pieces is masked, however it is cut', async () => {
  masks.add(['swordfish'])
  const shown: unknown[] = []
  transcript.subscribe({ event: (event) => shown.push(event), delta: (delta) => shown.push(delta), end() {} })
  for (const text of ['It is sw', 'ord', 'fish, yes', ' sword']) transcript.addDelta({ type: 'text', text })
  transcript.report(message('It is swordfish, yes sword'))
  transcript.addDelta({ type: 'text', text: 'anew' })
  expect(shown).toEqual([
    { type: 'text', text: 'It is ', offset: 0 },
    { type: 'text', text: '***, ye', offset: 6 },
    { type: 'text', text: 's ', offset: 13 },
    { seq: 2, at: '2030-01-01T00:00:00.000Z', type: 'message', text: 'It is ***, yes sword' },
    { type: 'text', text: 'anew', offset: 0 },
  ])
})

test('a state is left once: what comes later writes and tells nothing', () => {
  const end = (status: 'completed' | 'failed') =>
    records.setStatus(row, { status, result: status }, () =>
      transcript.add({ type: 'status', status, result: status }),
    )
  expect([end('completed'), end('failed'), end('completed')]).toEqual([true, false, false])
  expect(records.setStatus(row, { status: 'cancelled' }, () => {})).toBe(false)
  expect(records.setStatus(row, { status: 'awaiting_input', question: '?' }, () => {})).toBe(false)
  expect(records.find(row.id)).toMatchObject({ status: 'completed', result: 'completed', question: null })
  expect(records.listEvents(row.id, 0)).toHaveLength(2)
  const told = world.database.queries.select().from(events).orderBy(events.seq).all()
  expect(told.map(({ event }) => event)).toEqual(['task.created', 'task.completed'])
})

test('a follower of one that has just ended receives all and is closed', async () => {
  transcript.report(message('one'))
  transcript.end()
  const sent: string[] = []
  const send = (event: string) => void sent.push(event)
  const { signal } = new AbortController()
  await followTranscript({ taskId: row.id, records, transcript: transcript, after: 0, signal: signal, send })
  expect(sent).toEqual(['status', 'message'])
})

test('a state that the transcript cannot record is not entered, and webhooks are not notified', () => {
  const change = { status: 'failed', result: 'x' } as const
  const tell = () => {
    throw new Error('no space is left')
  }
  expect(() => records.setStatus(row, change, tell)).toThrow('no space is left')
  expect(records.find(row.id)).toMatchObject({ status: 'running', result: null })
  const told = world.database.queries.select().from(events).all()
  expect(told.map(({ event }) => event)).toEqual(['task.created'])
})

test('a reader who falls behind amid output is given none of it twice', async () => {
  const show = (text: string) =>
    transcript.addDelta({ type: 'output', call: 'call_1', stream: 'stdout', text })
  const sent: { offset?: number; seq?: number }[] = []
  let pace = Promise.resolve()
  const send = (_: string, data: unknown) => {
    sent.push(data as (typeof sent)[number])
    return pace
  }
  const { signal } = new AbortController()
  const following = followTranscript({
    taskId: row.id,
    records,
    transcript: transcript,
    after: 0,
    signal: signal,
    send,
  })
  show('one')
  await Bun.sleep(0)
  const blocked = Promise.withResolvers<void>()
  pace = blocked.promise
  show('two')
  await Bun.sleep(0)
  // More than may wait, while the second piece is on its way.
  for (let n = 0; n < 6; n += 1) transcript.report(message('x'.repeat(250_000)))
  show('three')
  blocked.resolve()
  await Bun.sleep(0)
  show('four')
  transcript.end()
  await following
  expect(sent.map(({ seq, offset }) => seq ?? `at ${offset}`)).toEqual([
    1,
    'at 0',
    'at 3',
    ...[2, 3, 4, 5, 6, 7],
    'at 6',
    'at 11',
  ])
})

test('output that is not UTF-8 is masked once more where it is stored, stays base64, and is not cut', () => {
  // A secret that was set after the command had printed it.
  masks.add(['geheim-und-lang'])
  const printed = Buffer.from(`\xff geheim-und-lang ${'\xff'.repeat(250_000)}`, 'latin1')
  transcript.report({
    type: 'toolResult',
    call: 'call_1',
    tool: 'run',
    ok: true,
    output: { stdout: '\ufffd geheim-und-lang', stdoutBase64: printed.toString('base64') },
  })
  const last = records.listEvents(row.id, 0).at(-1)
  const output = last?.type === 'toolResult' ? last.output : {}
  expect(output.stdout).toBe('\ufffd ***')
  expect(Buffer.from(String(output.stdoutBase64), 'base64').toString('latin1')).toBe(
    `\xff *** ${'\xff'.repeat(250_000)}`,
  )
})
