import { expect, test } from 'bun:test'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { command as berthCommand } from '../support/serve.ts'
import { serveForTests, temporaryFolder } from './command.ts'
import { onTerminal } from './terminal.ts'

const berth = await serveForTests()
await berth.server()

const GREEN = '\u001b[32mrunning\u001b[0m'

/** What `berth servers` prints on a terminal with these variables. */
async function listed(env: Record<string, string>): Promise<string> {
  await using terminal = onTerminal([...berthCommand, 'servers'], { cwd: berth.cwd, env })
  await terminal.exited
  await terminal.shows('us-east')
  return terminal.output()
}

test('colours are on a terminal, never with NO_COLOR, never in a pipe', async () => {
  expect(await listed({})).toContain(GREEN)
  expect(await listed({ NO_COLOR: '1' })).not.toContain('\u001b[')
  expect((await berth.run(['servers'])).stdout).not.toContain('\u001b[')
})

/** What a terminal or a reader takes for a command, and not for text. */
const CONTROLS = /(?![\t\r\n])[\p{Cc}\u202a-\u202e\u2066-\u2069]/u

const ESC = '\u001b'

/** A colour, or a line that is cleared. */
const COLOUR = new RegExp(`${ESC}\\[\\d*m|\\r${ESC}\\[K`, 'g')

/** What a command writes to a terminal, without what every terminal adds, and colours. */
async function written(...args: string[]): Promise<string> {
  await using terminal = onTerminal([...berthCommand, ...args], { cwd: berth.cwd })
  await terminal.exited
  return terminal.output().replaceAll(COLOUR, '')
}

test('JSON has no controls, and the value that has them', async () => {
  const name = 'a\u009b31mb\u007f\u202ec\u2066d\u001b[2Je'
  await berth.json('servers', 'create', '--task', name)
  const shown = await written('servers', '--json')
  expect(shown).not.toMatch(CONTROLS)
  const { servers } = JSON.parse(shown)
  expect(servers.map(({ task }: { task: string }) => task)).toContain(name)
})

test('a screen is shown as text, whatever a program has left on it', async () => {
  const server = await berth.server()
  const opened = await berth.run([
    ...['terminals', 'create', '--server', server, '--name', 'left'],
    "printf '\\342\\200\\256evil\\342\\201\\246done'; cat",
  ])
  expect(opened.stderr).toBe('')
  const shown = await written('terminals', 'screen', 'left', '--server', server, '--until', 'done')
  expect(shown).toContain('evil')
  expect(shown).not.toMatch(CONTROLS)
})

test('names of files of this machine move no cursor either', async () => {
  using folder = temporaryFolder()
  const directory = join(folder.path, 'sent')
  mkdirSync(directory)
  const name = 'pipe\u001b]0;title\u0007\rberth: all is well'
  expect(Bun.spawnSync(['mkfifo', join(directory, name)]).exitCode).toBe(0)
  const server = await berth.server()
  const shown = await written('cp', directory, `${server}:sent`)
  expect(shown).toContain('left out')
  expect(shown).not.toMatch(CONTROLS)
  expect(shown).not.toMatch(/\rberth: all/)
})
