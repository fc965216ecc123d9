import { expect, setDefaultTimeout, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { berthForTests } from '../../support/berth.ts'
import { until } from '../../support/processes.ts'

// Tens of megabytes pass through a pseudo-terminal, on a busy machine.
setDefaultTimeout(120_000)

const ERASE_ABOVE_AT_THE_END = '\\033[999;999H\\033[1J'

const berth = await berthForTests({ flags: { agent: 'command', 'agent-command': 'sh -c' } })
const mine = await berth.server({ tier: 'medium' })
const other = await berth.server()

async function opened(server: string, request: object): Promise<string> {
  const { status, body } = await berth.call('POST', `/servers/${server}/terminals`, request)
  if (status !== 201) throw new Error(`no terminal: ${status} ${JSON.stringify(body)}`)
  return `/servers/${server}/terminals/${body.terminal.id}`
}

async function screenOf(path: string, query = '') {
  const { status, body } = await berth.call('GET', `${path}/screen${query}`)
  expect(status).toBe(200)
  return body.screen
}

/** Returns the memory of berth's own process, in MB. */
function megabytes(): number {
  const status = readFileSync(`/proc/${berth.info.pid}/status`, 'utf8')
  return Number(/VmRSS:\s+(\d+)/.exec(status)?.[1]) / 1000
}

test('an agent that erases what is above the last cell completes, and berth goes on', async () => {
  const goal = `printf 'hi${ERASE_ABOVE_AT_THE_END}'; printf '\\033[Hdone'`
  const { body } = await berth.call('POST', `/servers/${mine}/tasks`, { goal })
  const { body: ended } = await berth.control('GET', `/wait?task=${body.task_id}&timeout_ms=30000`)
  expect(ended.task).toMatchObject({ status: 'completed', result: 'done' })
})

test.each([
  [80, 24],
  [132, 43],
  [20, 1000],
])(
  'output that erases all of a screen of %i × %i leaves it empty, and every other as it was',
  async (columns, rows) => {
    const precious = await opened(other, { command: 'seq 100; echo precious screen; sleep 300' })
    await screenOf(precious, '?until=precious%20screen')
    const before = await screenOf(precious, '?lines=100')
    const hostile = await opened(mine, {
      command: `printf 'gone${ERASE_ABOVE_AT_THE_END}\\033[1;1Hshown'; sleep 300`,
      columns,
      rows,
    })
    expect((await screenOf(hostile, '?until=shown')).text).toBe('shown')
    expect(await screenOf(precious, '?lines=100')).toEqual(before)
    expect(before.scrollback).toContain('\n50\n')
    for (const path of [precious, hostile]) await berth.call('DELETE', path)
  },
)

/** A megabyte of a character. */
const much = (count: number): string => `head -c ${count}000000 /dev/zero | tr '\\0' A`

test('strings that nobody ends, titles and combining characters take no more memory than the bound', async () => {
  const marks = '\\314\\201'.repeat(16)
  const programs = [
    ...['\\033]0;', '\\033]52;c;', '\\033P$q', '\\033_', '\\033^', '\\033X', '\\302\\2350;'].map(
      (begin) => `printf '${begin}'; ${much(9)}`,
    ),
    `for i in 1 2 3 4; do printf '\\033]0;'; ${much(9)}; printf '\\007\\033[22t'; done`,
    `m=$(printf '${marks}'); yes "a\${m}b\${m}c\${m}" | head -c 9000000`,
    `for i in $(seq 200); do printf '\\033[4:3;58;5;%dm${'x'.repeat(500)}' $i; done`,
  ]
  const before = megabytes()
  const paths: string[] = []
  for (const command of programs) {
    const path = await opened(mine, { command: `${command}; printf '\\033[2J\\033[Hend'; sleep 300` })
    const { outcome, title } = await screenOf(path, '?until=end&timeout_ms=60000')
    expect({ command: command.slice(0, 40), outcome, title }).toEqual({
      command: command.slice(0, 40),
      outcome: 'matched',
      title: '',
    })
    paths.push(path)
  }
  // Ten terminals of at most 24 MB each, and what is collected later.
  expect(megabytes() - before).toBeLessThan(400)
  for (const path of paths) await berth.call('DELETE', path)
})

test('output that takes long to draw holds up neither another screen nor the time of a wait for its own', async () => {
  const costly = await opened(mine, {
    command: `yes "$(printf '\\033#8%.0s' $(seq 1000))" | head -c 3000000; sleep 300`,
    columns: 10_000,
    rows: 10_000,
  })
  const shell = await opened(other, { command: 'cat' })
  // It is drawn from here on.
  const begun = performance.now()
  const own = berth.call('POST', `${costly}/input`, { text: 'x', until: 'never shown', timeout_ms: 1_000 })
  let slowest = 0
  for (let turn = 0; turn < 5; turn += 1) {
    const from = performance.now()
    const { body } = await berth.call('POST', `${shell}/input`, {
      text: `turn ${turn}\n`,
      until: `turn ${turn}`,
      timeout_ms: 5_000,
    })
    expect(body.screen.outcome).toBe('matched')
    slowest = Math.max(slowest, performance.now() - from)
  }
  expect(slowest).toBeLessThan(2_000)
  expect((await own).body.screen.outcome).toBe('timeout')
  expect(performance.now() - begun).toBeLessThan(6_000)
  for (const path of [costly, shell]) await berth.call('DELETE', path)
  await until(
    async () => (await berth.call('GET', `/servers/${other}/terminals`)).status === 200,
    'berth responds',
  )
})
