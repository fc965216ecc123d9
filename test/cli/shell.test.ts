import { describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import { processesOf, until } from '../support/processes.ts'
import { command as berthCommand } from '../support/serve.ts'
import { serve, serveForTests } from './command.ts'
import { onTerminal, type Typed } from './terminal.ts'

const berth = await serveForTests()
const server = await berth.server()
await berth.run(['servers', 'rename', 'desk'])

/** Runs a command on a terminal, as a person does. */
const sitDown = (...args: string[]): Typed => onTerminal([...berthCommand, ...args], { cwd: berth.cwd })

/** The prompt, which has colours. */
const PROMPT = /desk\S*~\S*\$ /

async function terminals(): Promise<{ name: string; viewers: number; exit_code: number | null }[]> {
  const response = await fetch(`${berth.info.base_url}/servers/${server}/terminals`, {
    headers: { authorization: `Bearer ${berth.info.api_key}` },
  })
  return ((await response.json()) as { terminals: never[] }).terminals
}

describe('berth shell', () => {
  test("is a shell on the server, of this terminal's size, and ends with the shell's code", async () => {
    await using terminal = sitDown('shell', 'desk')
    await terminal.shows(PROMPT)
    terminal.type('stty size; pwd\r')
    await terminal.shows(/50 200\r\n\/workspace/)
    terminal.type(
      'sh -c "trap \'stty size; exit\' WINCH; echo wait-\\$((1+1)); while :; do sleep 0.02; done"\r',
    )
    await terminal.shows('wait-2')
    terminal.resize(90, 20)
    await terminal.shows('20 90')
    // A key that comes before the program is in front goes to the shell.
    terminal.type('sh -c "echo front-$((1+1)); exec sleep 100"\r')
    await terminal.shows('front-2')
    terminal.type('\x03')
    await terminal.shows(/\^C/)
    terminal.type('exit 7\r')
    expect(await terminal.exited).toBe(7)
    expect(Bun.stripANSI(terminal.output())).toEndWith(' has ended, with exit code 7.\r\n')
  })

  test('is left running by ~. and attached to again, with what was on its screen', async () => {
    await using first = sitDown('shell', '--name', 'work')
    await first.shows(PROMPT)
    // What a full-screen program sets, so that the own terminal must be put right.
    first.type("echo kept-$((6*7)); printf '\\033[?1049h\\033[?25l\\033[?2004h'; read line\r")
    await first.shows('\x1b[?1049h\x1b[?25l')
    first.type('\r~')
    first.type('.')
    await first.shows(/work runs on\. Attach again with: berth shell \S+ --attach work/)
    expect(await first.exited).toBe(0)
    for (const undone of ['\x1b[?1049l', '\x1b[?25h', '\x1b[?2004l']) expect(first.output()).toContain(undone)

    await using second = sitDown('shell', '--attach', 'work')
    await second.shows('kept-42')
    // Without a name it is the one that was opened last.
    await using third = sitDown('shell', 'desk', '--attach')
    await third.shows('Attached to work.')
    await third.shows('kept-42')
    second.type("\rprintf '\\033[?1049l'; echo to-$((1+1))-both\r")
    await Promise.all([second.shows('to-2-both'), third.shows('to-2-both')])
    second.type('\r~?')
    await second.shows('~. leaves it running')
    second.type('\r~~.\r')
    await second.shows('~.: command not found')
    second.type('exit\r')
    expect(await Promise.all([second.exited, third.exited])).toEqual([127, 127])
    expect((await terminals()).find(({ name }) => name === 'work')).toMatchObject({
      exit_code: 127,
      viewers: 0,
    })
  })

  test('says why it is over where the program did not end by itself', async () => {
    await using terminal = sitDown('shell')
    await terminal.shows(PROMPT)
    await berth.run(['servers', 'stop'])
    await terminal.shows('berth: the terminal is gone: the server has stopped.')
    expect(await terminal.exited).toBe(255)

    await using again = sitDown('shell')
    await again.shows(PROMPT)
    await using other = sitDown('shell', '--attach', 'nothing')
    await other.shows('No terminal has "nothing" as its id or name.')
    expect(await other.exited).toBe(1)
    again.type('kill -9 $$\r')
    expect(await again.exited).toBe(137)
  })

  test('says so and ends with 255 where berth is killed, and nothing of the terminal is left', async () => {
    await using killed = await serve()
    await killed.server()
    const sits = [...berthCommand, 'shell']
    await using terminal = onTerminal(sits, { cwd: killed.cwd })
    await terminal.shows(/~\S*\$ /)
    terminal.type('sleep 300 & sleep 300\r')
    await terminal.shows('sleep 300\r\n')
    killed.child.kill('SIGKILL')
    await terminal.shows('berth: the terminal is gone: the connection was lost.')
    expect(await terminal.exited).toBe(255)
    const isGone = (): boolean => processesOf(join(killed.cwd, '.berth')).length === 0
    await until(isGone, 'the end of all that ran on the terminal')
  })

  test('takes a terminal, and says what a script uses instead', async () => {
    expect(await berth.run(['shell'])).toMatchObject({
      exitCode: 1,
      stderr:
        'berth: This takes a terminal for its input and its output. For a command in a script use: berth exec SERVER -- COMMAND\n',
    })
    expect(await berth.run(['exec', '-t', '--', 'true'])).toMatchObject({ exitCode: 1 })
    expect(await berth.run(['exec', '-t', '--json', '--', 'true'])).toMatchObject({ exitCode: 2 })
    expect(await berth.run(['shell', '--attach', 'a', '--cwd', 'b'])).toMatchObject({ exitCode: 2 })
  })
})

test('berth exec -t runs one command on a terminal, takes its keys and exits with its code', async () => {
  await using terminal = sitDown(
    'exec',
    '-it',
    '--env',
    'WORD=heard',
    '--',
    'sh',
    '-c',
    'tty; read line; echo "$WORD $line"; exit 3',
  )
  await terminal.shows('/dev/pts/')
  terminal.type('wörter 漢字\r')
  await terminal.shows('heard wörter 漢字')
  expect(await terminal.exited).toBe(3)
})

test('a large output arrives whole, and the last line before the end', async () => {
  await using terminal = sitDown('exec', '-t', '--', 'seq', '1', '200000')
  expect(await terminal.exited).toBe(0)
  const lines = terminal.output().split('\r\n')
  expect(lines.slice(0, 200_000)).toEqual(Array.from({ length: 200_000 }, (_, at) => String(at + 1)))
})
