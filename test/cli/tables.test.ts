import { expect, test } from 'bun:test'
import { command as berthCommand } from '../support/serve.ts'
import { serve, serveForTests } from './command.ts'
import { onTerminal } from './terminal.ts'

const LABEL = 'a label of some length, which no narrow terminal has room for'

const berth = await serveForTests()
const ids: string[] = []
for (const label of ['one', LABEL]) {
  const { stdout } = await berth.run(['servers', 'create', '--task', label, '--json'])
  ids.unshift(JSON.parse(stdout).id)
}

/** Runs a command on a terminal, and returns its lines without colours. */
async function onWidth(columns: number, ...args: string[]): Promise<string[]> {
  await using terminal = onTerminal([...berthCommand, ...args], { cwd: berth.cwd, columns })
  expect(await terminal.exited).toBe(0)
  return Bun.stripANSI(terminal.output()).trimEnd().split('\r\n')
}

test('a table is as wide as the terminal: minor columns go first, then texts are cut', async () => {
  const [heading = '', ...lines] = await onWidth(120, 'servers')
  expect(heading).toMatch(/^ID +LABEL +TIER +STATUS +STORAGE +CREATED +URL$/)
  expect(lines[0]).toContain(LABEL)
  for (const columns of [120, 90, 60]) {
    for (const line of await onWidth(columns, 'servers'))
      expect(Bun.stringWidth(line)).toBeLessThanOrEqual(columns)
  }
  const narrow = await onWidth(60, 'servers')
  expect(narrow[0]).toMatch(/^ID +LABEL +STATUS +URL$/)
  expect(narrow[1]).toContain('…')
})

test('on a terminal ids are short, still name what they stand for, and times are relative', async () => {
  const [, line = ''] = await onWidth(200, 'servers')
  const [short = ''] = line.split(' ')
  expect(ids[0]).toStartWith(short)
  expect(short.length).toBeLessThan(20)
  expect(line).toMatch(/ (?:now|\d+s ago)(?: |$)/)
  expect((await berth.run(['servers', 'get', short])).stdout).toContain(ids[0] ?? 'no id')
})

test('names that look like ids are cut like them, and hold the table up in no case', async () => {
  await using own = await serve()
  const ulid = '01hzzzzzzzzzzzzzzzzzzzzzzz'
  for (const label of [`srv_${ulid}`, `prj_${ulid}`]) await own.run(['servers', 'create', '--task', label])
  await using terminal = onTerminal([...berthCommand, 'servers'], { cwd: own.cwd })
  expect(await terminal.exited).toBe(0)
  for (const kind of ['srv', 'prj']) expect(terminal.output()).toContain(`${kind}_${ulid.slice(0, 10)} `)
})

test('--wide and a pipe get everything in full', async () => {
  const wide = await onWidth(60, 'servers', '--wide')
  const { stdout } = await berth.run(['servers'])
  expect(wide).toEqual(stdout.trimEnd().split('\n'))
  for (const said of [...ids, LABEL, 'REGION']) expect(stdout).toContain(said)
})

test('-q prints the ids alone, and nothing where there is nothing', async () => {
  expect((await berth.run(['servers', '-q'])).stdout).toBe(ids.map((id) => `${id}\n`).join(''))
  expect(await onWidth(40, 'servers', 'list', '--quiet')).toEqual(ids)
  expect((await berth.run(['webhooks', '-q'])).stdout).toBe('')
})
