import { expect, test } from 'bun:test'
import { until } from '../support/processes.ts'
import { command as berthCommand } from '../support/serve.ts'
import { serveForTests } from './command.ts'
import { onTerminal, type Typed } from './terminal.ts'

const berth = await serveForTests()
const server = await berth.server()

const typing = (...args: string[]) => onTerminal([...berthCommand, 'tasks', ...args], { cwd: berth.cwd })

const latest = async () => JSON.parse((await berth.run(['tasks', 'list', '--json'])).stdout).tasks[0]

const UNTIL_GO = 'until [ -e go ]; do sleep 0.02; done'

/** What is shown behind the question, without what steers the terminal. */
const behind = ({ output }: Typed, question: string) =>
  Bun.stripANSI(output().slice(output().indexOf(question) + question.length)).replaceAll('\r', '')

test('a question is put to the person, and what is typed is its answer', async () => {
  await using terminal = typing('run', 'ask: Which colour?\nask: Sure?\ncomplete: thanks')
  await terminal.shows(/Which colour\?\r\n.*> /)
  terminal.type('blü\x7fue, of course\r')
  await terminal.shows(/Sure\?\r\n.*> /)
  terminal.type('\r')
  expect(await terminal.exited).toBe(0)
  await terminal.shows('thanks')
  expect(terminal.output().match(/Which colour/g)).toHaveLength(1)
  // The terminal has shown what was typed; the event that tells of it adds nothing.
  expect(terminal.output()).not.toContain('\u001b[36m>')
  const { id } = await latest()
  const { stdout } = await berth.run(['tasks', 'events', id, '--json'])
  const answers = stdout
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line).answer)
  expect(answers.filter((answer) => answer !== undefined)).toEqual(['blue, of course', ''])
})

test('lines that are pasted are one answer, of which the last may be gone on with', async () => {
  await using asked = typing('run', 'ask: Which colours?\ncomplete: [{{answer}}]')
  await asked.shows(/Which colours\?\r\n.*> /)
  asked.type('red\rgreen\rblu')
  await asked.shows('blu')
  asked.type('e\r')
  expect(await asked.exited).toBe(0)
  await asked.shows(/\[red\r\ngreen\r\nblue\]/)
})

test('does not take what was typed before a question as its answer', async () => {
  await using terminal = typing(
    'run',
    `run: echo begun; ${UNTIL_GO}\nask: Delete it?\ncomplete: [{{answer}}]`,
  )
  await terminal.shows(/begun\r\n/)
  terminal.type('y\rye')
  await berth.run(['exec', server, 'touch go'])
  await terminal.shows(/Delete it\?\r\n.*> /s)
  terminal.type('n\u001co\r')
  expect(await terminal.exited).toBe(0)
  await terminal.shows('[no]')
})

test('a question waits for the answer after Ctrl-Z', async () => {
  const line = [...berthCommand, 'tasks', 'run', "'ask: Later?\ncomplete: [{{answer}}]'"].join(' ')
  await using terminal = onTerminal(['sh', '-i'], { cwd: berth.cwd, env: { PS1: 'prompt$ ' } })
  await terminal.shows('prompt$ ')
  terminal.type(`${line}\n`)
  // In colour, other than what the shell shows of the command.
  await terminal.shows(/m Later\?\r\n.*> /s)
  terminal.type('half\u001a')
  await terminal.shows(/Stopped.*prompt\$ /s)
  terminal.type('fg\n')
  await terminal.shows(/Stopped.*> half/s)
  terminal.type(' more\r')
  await terminal.shows('[half more]')
  terminal.type('exit\n')
  await terminal.exited
})

test('a question that somebody else answers is asked no more', async () => {
  await using terminal = typing('run', 'ask: Anybody?\nrun: echo goes on\ncomplete: thanks')
  await terminal.shows(/Anybody\?\r\n.*> /)
  terminal.type('half')
  await terminal.shows('half')
  await berth.run(['tasks', 'answer', (await latest()).id, 'me'])
  expect(await terminal.exited).toBe(0)
  await terminal.shows('thanks')
  expect(behind(terminal, 'Anybody?')).toBe(
    '\n> half> me\n▸ $ echo goes on\n  │ goes on\n✓ completed\nthanks\n',
  )
})

test('a task that is cancelled while it asks asks no more', async () => {
  await using terminal = typing('run', 'ask: Still?')
  await terminal.shows(/Still\?\r\n.*> /)
  await berth.run(['tasks', 'cancel', (await latest()).id])
  expect(await terminal.exited).toBe(4)
  await terminal.shows('cancelled')
})

test.each([
  ['Ctrl-C', '\x03', 130, 'berth: the task goes on.'],
  ['Ctrl-D', '\x04', 3, 'The task waits for an answer. Give it with: berth tasks answer task_'],
])('%s at the question leaves it open and says how to go on', async (_, key, code, said) => {
  await using terminal = typing('run', 'ask: Now?')
  await terminal.shows(/Now\?\r\n.*> /)
  terminal.type(`half${key}`)
  // With something typed Ctrl-D only deletes.
  if (code === 3) terminal.type('\x15\x04')
  expect(await terminal.exited).toBe(code)
  await terminal.shows(said)
  const task = await latest()
  expect(task.status).toBe('awaiting_input')
  await berth.run(['tasks', 'cancel', task.id])
})

test('answer asks where no text is given', async () => {
  const { stdout } = await berth.run(['tasks', 'run', 'ask: Which one?\ncomplete: ok', '--json', '-d'])
  const { task_id: id } = JSON.parse(stdout)
  await until(async () => (await latest()).status === 'awaiting_input', 'it asks')
  await using terminal = typing('answer', id, '-f')
  await terminal.shows(/Which one\?\r\n.*> /)
  terminal.type('this\r')
  expect(await terminal.exited).toBe(0)
  await terminal.shows('ok')
})

test('events -f never asks, but says how to answer', async () => {
  const { stdout } = await berth.run(['tasks', 'run', 'ask: Look?\ncomplete: seen', '--json', '-d'])
  const { task_id: id } = JSON.parse(stdout)
  await using terminal = typing('events', id, '-f')
  await terminal.shows(`berth tasks answer ${id} TEXT`)
  await berth.run(['tasks', 'answer', id, 'yes'])
  expect(await terminal.exited).toBe(0)
  await terminal.shows('seen')
  expect(Bun.stripANSI(terminal.output()).replaceAll('\r', '')).toBe(
    `? Look?\nThe task waits for an answer. Give it with: berth tasks answer ${id} TEXT\n> yes\n✓ completed\nseen\n`,
  )
})

test('colours mark what is what; what the agent prints has none of its own', async () => {
  await using terminal = typing('run', `run: printf '\\033[35mpink\\033[0m\\n'; exit 2`)
  expect(await terminal.exited).toBe(1)
  await terminal.shows('failed')
  expect(terminal.output()).toContain('\u001b[36m▸\u001b[0m \u001b[1m$ printf')
  expect(terminal.output()).toContain('  \u001b[2m│\u001b[0m pink\r\n  \u001b[31m✗\u001b[0m exit code 2')
  expect(terminal.output()).not.toContain('\u001b[35m')
})
