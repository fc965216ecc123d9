import { expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { until } from '../support/processes.ts'
import { command as berthCommand } from '../support/serve.ts'
import { type Outcome, serve, serveForTests, start } from './command.ts'

const berth = await serveForTests()
const server = await berth.server()

const tasks = (...args: string[]) => berth.run(['tasks', ...args])
const piped = (text: string, ...args: string[]) =>
  berth.run(['tasks', ...args], { stdin: new TextEncoder().encode(text) })

/** The same with `--json`: it must exit with the code, and print one line; on stderr only how a question is answered. */
async function json(code: number, ...args: string[]) {
  const { exitCode, stdout, stderr } = await tasks(...args, '--json')
  expect({ args, exitCode }).toEqual({ args, exitCode: code })
  expect(stderr.startsWith('The task waits for an answer.')).toBe(code === 3)
  expect(stderr === '').toBe(code !== 3)
  expect(stdout.split('\n').length).toBe(2)
  return JSON.parse(stdout)
}

const idOf = ({ stdout, stderr }: Outcome): string =>
  /^Started (task_\w+) on /.exec(stderr || stdout)?.[1] ?? ''
const statusOf = async (id: string): Promise<string> => (await json(0, 'get', id)).task.status
const touch = (file: string) => berth.run(['exec', server, '--', 'touch', file])

const GOAL = `write: notes/a.txt <<< hello
run: cat notes/a.txt; echo; for n in 1 2; do echo line $n; done; echo oh no >&2
complete: all is done`

const TRANSCRIPT = `▸ write notes/a.txt  5 bytes
▸ $ cat notes/a.txt; echo; for n in 1 2; do echo line $n; done; echo oh no >&2
  │ hello
  │ line 1
  │ line 2
  │ oh no
✓ completed
`

test('run follows the agent: what it does on stderr, the result on stdout', async () => {
  const outcome = await tasks('run', GOAL)
  expect(outcome).toMatchObject({ exitCode: 0, stdout: 'all is done\n' })
  const id = idOf(outcome)
  expect(outcome.stderr).toBe(`Started ${id} on ${server}.\n${TRANSCRIPT}`)
  expect(await tasks('events', id)).toMatchObject({
    exitCode: 0,
    stdout: `${TRANSCRIPT}all is done\n`,
    stderr: '',
  })
  expect((await tasks('events', id, '-f')).stdout).toBe(`${TRANSCRIPT}all is done\n`)
  expect((await tasks('run', 'complete: x', '--follow', '--server', server)).stdout).toBe('x\n')
})

test('a task that fails exits with 1 and says why', async () => {
  const { exitCode, stdout, stderr } = await tasks('run', 'run: echo oops; exit 7')
  expect({ exitCode, stdout }).toEqual({ exitCode: 1, stdout: '' })
  expect(stderr).toEndWith(`▸ $ echo oops; exit 7
  │ oops
  ✗ exit code 7
✗ failed: The command echo oops; exit 7 ended with exit code 7:
  oops
`)
})

test('the goal comes from a file or standard input as well', async () => {
  writeFileSync(join(berth.cwd, 'goal.md'), 'Please do this:\n  complete: from a file\n')
  expect((await tasks('run', '--file', 'goal.md')).stdout).toBe('from a file\n')
  expect((await piped('complete: from a pipe\n', 'run', '-')).stdout).toBe('from a pipe\n')
  expect((await piped('complete: from a pipe', 'run', '--file', '-')).stdout).toBe('from a pipe\n')
  expect((await json(0, 'list')).tasks[0].goal).toBe('complete: from a pipe')
})

test.each([
  [['run'], 2, 'Say what is to be reached: berth tasks run "GOAL"'],
  [['run', ' '], 2, 'The goal is empty.'],
  [['run', 'x', '--file', 'y'], 2, 'Give the goal once'],
  [['run', 'fix', 'it'], 2, 'too many arguments'],
  [['run', 'fix', 'it'], 2, 'Put a text of several words in quotes.'],
  [['run', 'x', '-f', '-d'], 2, 'cannot be used with'],
  [['run', '--file', 'none.md'], 1, 'There is no file none.md.'],
  [['run', 'x', '--server', 'srv_none'], 1, '(not_found)'],
  [['events', 'task_x', '--after', 'y'], 2, 'Expected the "seq" of an event'],
  [['get', 'task_none'], 1, 'No task has the id "task_none". "berth tasks" lists those there are.'],
  [['answer', 'task_none', 'x'], 1, 'No task has the id "task_none".'],
  [['cancel', 'task_none'], 1, 'No task has the id "task_none".'],
  [['events', 'task_none', '-f'], 1, 'No task has the id "task_none".'],
])('%j exits with %i and says what is wrong', async (args, code, said) => {
  const { exitCode, stdout, stderr } = await tasks(...args)
  expect({ exitCode, stdout }).toEqual({ exitCode: code, stdout: '' })
  expect(stderr).toStartWith('berth: ')
  expect(stderr).toContain(said)
})

test('a goal that is not text is refused', async () => {
  const { exitCode, stderr } = await berth.run(['tasks', 'run', '-'], { stdin: Uint8Array.of(0xff, 0xfe) })
  expect({ exitCode, stderr }).toEqual({ exitCode: 1, stderr: 'berth: Standard input is not UTF-8 text.\n' })
})

test('a goal without end is given up', async () => {
  const told = 'is too long: 1,048,576 characters are the most.\n'
  const file = await tasks('run', '--file', '/dev/zero')
  expect({ code: file.exitCode, said: file.stderr }).toEqual({ code: 1, said: `berth: /dev/zero ${told}` })
  const endless = Bun.spawn(['sh', '-c', 'yes | "$@"', 'sh', ...berthCommand, 'tasks', 'run', '-'], {
    cwd: berth.cwd,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  expect(await endless.stderr.text()).toContain(`berth: Standard input ${told}`)
  expect(await endless.exited).toBe(1)
}, 120_000)

test('without a terminal a question ends it with 3, and says how it is answered; that goes on', async () => {
  const asked = await tasks('run', 'ask: Which colour?\nask: How many?\ncomplete: thanks')
  const id = idOf(asked)
  const howTo = `The task waits for an answer. Give it with: berth tasks answer ${id} TEXT\n`
  expect(asked).toMatchObject({ exitCode: 3, stdout: '' })
  expect(asked.stderr).toBe(`Started ${id} on ${server}.\n? Which colour?\n${howTo}`)
  expect((await tasks('get', id)).stdout).toEndWith(`Question\n  Which colour?\n\n${howTo}`)
  const first = await tasks('answer', id, 'a dark\nblue', '-f')
  expect(first).toMatchObject({ exitCode: 3, stdout: '' })
  expect(first.stderr).toBe(`> a dark\n  blue\n? How many?\n${howTo}`)
  const second = await piped('7\n', 'answer', id, '-', '--follow')
  expect(second).toMatchObject({ exitCode: 0, stdout: 'thanks\n', stderr: '> 7\n✓ completed\n' })
  const late = await tasks('answer', id, 'more')
  expect(late.exitCode).toBe(1)
  expect(late.stderr).toContain('it is completed')
})

test('answer without following says how to look at it', async () => {
  const { task_id: id } = await json(
    0,
    'run',
    'ask: Go?\nrun: until [ -e on1 ]; do sleep 0.02; done',
    '--detach',
  )
  await until(async () => (await statusOf(id)) === 'awaiting_input', 'it asks')
  expect((await tasks('answer', id)).stderr).toBe(
    `berth: Say what the answer is: berth tasks answer ${id} TEXT\n`,
  )
  expect(await tasks('answer', id, 'yes')).toMatchObject({
    exitCode: 0,
    stdout: `Answered; the task goes on.\n  Look at it:  berth tasks events ${id} -f\n  Call it off: berth tasks cancel ${id}\n`,
  })
  await touch('on1')
  expect((await tasks('events', id, '-f', '--after', '3')).stdout).toStartWith('> yes\n▸ $ until')
})

test('for programs: one line of JSON, with the same exit codes', async () => {
  expect((await json(0, 'run', 'complete: x')).task).toMatchObject({
    status: 'completed',
    result: 'x',
    serverId: server,
  })
  expect((await json(1, 'run', 'fail: x')).task).toMatchObject({ status: 'failed', result: 'x' })
  const { task } = await json(3, 'run', 'ask: x?')
  expect(task).toMatchObject({ status: 'awaiting_input', question: 'x?' })
  expect((await json(0, 'answer', task.id, 'y')).task.id).toBe(task.id)
  const again = (await json(3, 'run', 'ask: x?')).task
  expect((await json(0, 'answer', again.id, 'y', '-f')).task.status).toBe('completed')
  const long = (await json(3, 'run', 'ask: x?\nrun: until [ -e on5 ]; do sleep 0.02; done\ncomplete: late'))
    .task
  // A question that has its answer already holds nobody up.
  const following = json(0, 'answer', long.id, 'y', '-f')
  await until(async () => (await statusOf(long.id)) === 'running', 'it goes on')
  await touch('on5')
  expect((await following).task.result).toBe('late')
  expect(await json(0, 'run', 'complete: x', '-d')).toEqual({
    task_id: expect.stringMatching(/^task_/),
    status: 'running',
  })
  const { stdout } = await tasks('events', task.id, '--json')
  const events = stdout
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line))
  expect(events.map(({ seq }) => seq)).toEqual(events.map((_, at) => at + 1))
  expect((await tasks('events', task.id, '--json', '-f', '--after', '2')).stdout).toBe(
    stdout.split('\n').slice(2).join('\n'),
  )
})

test('--detach returns at once; list, get and cancel show the task', async () => {
  const begun = await tasks('run', 'run: sleep 600\n# a second line', '--detach')
  const id = idOf(begun)
  expect(begun).toMatchObject({ exitCode: 0, stderr: '' })
  expect(begun.stdout).toContain(`berth tasks events ${id} -f`)
  const listed = (await tasks('list')).stdout.split('\n')
  expect(listed[0]).toMatch(/^ID +STATUS +SERVER +CREATED +GOAL$/)
  expect(listed[1]).toMatch(new RegExp(`^${id}  running +${server}  \\S+Z  run: sleep 600 # a second line$`))
  expect((await tasks()).stdout).toBe(listed.join('\n'))
  expect((await tasks('get', id)).stdout).toMatch(
    /^ID +task_\w+\nServer +srv_\w+\nStatus +running\nCreated +\S+\nGoal\n {2}run: sleep 600\n {2}# a second line\n$/,
  )
  expect(await tasks('cancel', id)).toMatchObject({ exitCode: 0, stdout: `Cancelled ${id}.\n` })
  expect((await json(0, 'cancel', id)).task.status).toBe('cancelled')
  expect((await tasks('events', id)).stdout).toEndWith('■ cancelled\n')
})

test('a task that is cancelled while it is followed exits with 4', async () => {
  const child = start(['tasks', 'run', 'run: echo begun; sleep 600'], { cwd: berth.cwd })
  const stderr = collect(child.stderr)
  await until(() => stderr.text.includes('│ begun\n'), 'it is under way')
  await tasks('cancel', idOf({ stderr: stderr.text, stdout: '' } as Outcome))
  expect(await child.exited).toBe(4)
  expect(await stderr.all).toEndWith('■ cancelled\n')
})

test('Ctrl-C leaves the task going and says how to look at it and to call it off', async () => {
  const child = start(['tasks', 'run', 'run: echo begun; until [ -e on2 ]; do sleep 0.02; done'], {
    cwd: berth.cwd,
  })
  const stderr = collect(child.stderr)
  await until(() => stderr.text.includes('│ begun\n'), 'the command runs')
  child.kill('SIGINT')
  expect(await child.exited).toBe(130)
  const id = idOf({ stderr: await stderr.all, stdout: '' } as Outcome)
  expect(stderr.text).toEndWith(
    `berth: the task goes on.\n  Look at it:  berth tasks events ${id} -f\n  Call it off: berth tasks cancel ${id}\n`,
  )
  expect(await statusOf(id)).toBe('running')
  const late = start(['tasks', 'events', id, '-f'], { cwd: berth.cwd })
  const shown = collect(late.stdout)
  await until(() => shown.text.includes('│ begun\n'), 'it is shown again')
  await touch('on2')
  expect(await late.exited).toBe(0)
  expect(await shown.all).toMatch(/^▸ \$ echo begun; [^\n]*\n {2}│ begun\n✓ completed\nDone: /)
})

test('the output of a command arrives while it runs', async () => {
  const child = start(
    ['tasks', 'run', 'run: echo first; until [ -e on3 ]; do sleep 0.02; done; printf second'],
    {
      cwd: berth.cwd,
    },
  )
  const stderr = collect(child.stderr)
  await until(() => stderr.text.endsWith('│ first\n'), 'the first line is shown')
  await touch('on3')
  expect(await child.exited).toBe(0)
  expect(await stderr.all).toEndWith('│ first\n  │ second\n✓ completed\n')
})

test('control characters and escapes of what the agent says reach nobody', async () => {
  const evil = `printf '\\033[2J\\033[31mred\\033[0m \\033]0;title\\007bell\\007 \\302\\2331m 50%%\\r100%%\\r\\n\\tend \\342\\200\\256x'`
  const { stderr, stdout, exitCode } = await tasks(
    'run',
    `run: ${evil}\nask: \u001b[31mSure\u0007?\u001b]0;x\u0007\ncomplete: \u001b[2Jdone`,
  )
  expect(exitCode).toBe(3)
  expect(stderr).toContain('  │ red bell� �1m 50%\n  │ 100%\n  │     end �x\n? Sure�?\n')
  const id = idOf({ stderr, stdout } as Outcome)
  const rest = await tasks('answer', id, 'a\u001b[1mb', '-f')
  expect(rest.stderr).toBe('> ab\n✓ completed\n')
  const shown = [stderr, rest.stderr, (await tasks('get', id)).stdout, (await tasks()).stdout]
  shown.push((await tasks('events', id)).stdout)
  // biome-ignore lint/suspicious/noControlCharactersInRegex: what must not be there
  for (const text of shown) expect(text).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u202e]/)
  // A program gets it as it is.
  expect((await json(0, 'get', id)).task.result).toBe('\u001b[2Jdone')
})

test('output of any length is shown whole and wrapped nowhere', async () => {
  const { stderr } = await tasks(
    'run',
    'run: until [ -e on4 ]; do touch on4; sleep 0.2; done; seq 30000; printf %05000d 7',
  )
  const lines = stderr.split('\n').filter((line) => line.startsWith('  │ '))
  expect(lines.length).toBe(30_001)
  expect(lines.slice(0, -1).every((line, at) => line === `  │ ${at + 1}`)).toBe(true)
  expect(lines.at(-1)).toBe(`  │ ${'7'.padStart(5_000, '0')}`)
})

test('with several servers run needs a name, the others find the task', async () => {
  await using many = await serve()
  expect((await many.run(['tasks'])).stdout).toBe('No tasks yet. Give a goal with "berth tasks run".\n')
  expect((await many.run(['tasks', 'run', 'complete: x'])).stderr).toContain('berth servers create')
  const servers = [await many.server(), await many.server()]
  const unclear = await many.run(['tasks', 'run', 'complete: x'])
  expect(unclear).toMatchObject({ exitCode: 1, stdout: '' })
  for (const said of ['There are 2 servers', ...servers, '--server SERVER'])
    expect(unclear.stderr).toContain(said)
  const ids = []
  for (const one of [...servers, servers[0] ?? '']) {
    const { stdout } = await many.run(['tasks', 'run', 'ask: x?', '--server', one, '--json', '-d'])
    ids.push(JSON.parse(stdout).task_id)
  }
  const listed = JSON.parse((await many.run(['tasks', 'list', '--json'])).stdout).tasks
  expect(listed.map(({ id }: { id: string }) => id)).toEqual(ids.toReversed())
  const of = JSON.parse(
    (await many.run(['tasks', 'list', '--json', '--server', servers[1] ?? ''])).stdout,
  ).tasks
  expect(of.map(({ id }: { id: string }) => id)).toEqual([ids[1]])
  expect((await many.run(['tasks', 'get', ids[1]])).stdout).toContain(servers[1] ?? '?')
  expect((await many.run(['tasks', 'get', ids[1], '--server', servers[0] ?? ''])).exitCode).toBe(1)
  expect((await many.run(['tasks', 'cancel', ids[0]])).exitCode).toBe(0)
})

test('a server that is deleted, and a berth that is stopped, end the following with what became of the task', async () => {
  await using own = await serve()
  const follow = async (end: () => Promise<unknown>) => {
    const child = start(['tasks', 'run', 'run: echo begun; sleep 600'], { cwd: own.cwd })
    const stderr = collect(child.stderr)
    await until(() => stderr.text.includes('│ begun\n'), 'it is under way')
    await end()
    return { exitCode: await child.exited, stderr: await stderr.all }
  }
  const gone = await own.server()
  const deleted = await follow(() => own.run(['servers', 'delete', gone]))
  expect(deleted.exitCode).toBe(1)
  expect(deleted.stderr).toEndWith('✗ failed: The server was deleted while the task ran.\n')
  await own.server()
  const stopped = await follow(async () => own.child.kill('SIGTERM'))
  expect(stopped.exitCode).toBe(1)
  expect(stopped.stderr).toEndWith('✗ failed: berth was stopped while the task ran.\n')
})

/** Reads a stream on and on. */
function collect(stream: ReadableStream<Uint8Array>) {
  const collected = { text: '', all: Promise.resolve('') }
  collected.all = (async () => {
    for await (const chunk of stream.pipeThrough(new TextDecoderStream())) collected.text += chunk
    return collected.text
  })()
  return collected
}
