import { expect, test } from 'bun:test'
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { projectPorts } from '../support/ports.ts'
import { command as berthCommand } from '../support/serve.ts'
import { run, serveForTests, temporaryFolder } from './command.ts'
import { onTerminal } from './terminal.ts'

const berth = await serveForTests()
const server = await berth.server()

/** A site whose build waits until `letGo` is called. */
function heldSite(name: string) {
  mkdirSync(join(berth.cwd, name), { recursive: true })
  const build = `while [ ! -e /workspace/go ]; do sleep 0.05; done; sleep 0.1; mkdir -p out; cp index.html out`
  writeFileSync(join(berth.cwd, name, 'index.html'), 'x')
  writeFileSync(join(berth.cwd, name, 'berth.json'), JSON.stringify({ build, start: 'bunx serve out' }))
}
const letGo = () => berth.run(['files', 'write', server, 'go'])
const holdAgain = () => berth.run(['exec', server, 'rm -f go'])

/** What the last line of a terminal showed. */
const statusLines = (output: string): string[] =>
  output.split('\r\x1b[K\x1b[2m').flatMap((part, index) => {
    const [text = '', after] = part.split('\x1b[0m', 2)
    return index > 0 && !after?.startsWith('\r\n') ? [text] : []
  })

test('a copy that takes long shows bytes and rate on one line, which is gone when it says what was copied', async () => {
  const fifo = join(berth.cwd, 'fifo')
  Bun.spawnSync(['mkfifo', fifo])
  const shell = ['sh', '-c', 'cat "$0" | "$@"', fifo, ...berthCommand, 'cp', '-', `${server}:slow`]
  await using terminal = onTerminal(shell, { cwd: berth.cwd, columns: 30 })
  const feed = Bun.spawn(['sh', '-c', 'printf 1234; read _; printf 5678', '--'], {
    stdin: 'pipe',
    stdout: Bun.file(fifo),
  })
  await terminal.shows(/4 bytes, \d+ bytes?\/s/)
  feed.stdin.write('\n')
  await feed.stdin.end()
  expect(await terminal.exited).toBe(0)
  const [last] = terminal.output().split('\r\x1b[K').slice(-1)
  expect(last).toMatch(new RegExp(`^Copied to ${server}:slow: 8 bytes in [\\d.]+ m?s\\.\r\n$`))
  for (const line of statusLines(terminal.output())) expect(line.length).toBeLessThan(30)
  rmSync(fifo)
})

test('a phase that takes long is shown as it goes on, and with its time when it has ended', async () => {
  await holdAgain()
  heldSite('held')
  await using terminal = onTerminal([...berthCommand, 'projects', 'create', 'held'], {
    cwd: berth.cwd,
    columns: 80,
  })
  await terminal.shows(/build … \d+ s/)
  await letGo()
  await terminal.shows(/✓ build \d/)
  await terminal.exited
  expect(terminal.output()).toMatch(/→ build\S*\r\n[\s\S]*✓ build \d[\s\S]*→ start/)
})

test('prints plain lines without a terminal: each phase, and how long it took', async () => {
  await letGo()
  heldSite('plain')
  const { stderr } = await berth.run(['projects', 'create', 'plain'])
  expect(stderr).toMatch(/^→ build\n(?:.*\n)*✓ build [\d.]+ m?s\n→ start\n/m)
  expect([stderr.includes('\r'), stderr.includes('\x1b')]).toEqual([false, false])
})

test('a phase that fails is marked', async () => {
  mkdirSync(join(berth.cwd, 'failing'))
  writeFileSync(join(berth.cwd, 'failing/berth.json'), '{"build": "exit 3", "start": "true"}')
  const { stderr } = await berth.run(['projects', 'create', 'failing'])
  expect(stderr).toMatch(/^✗ build [\d.]+ m?s\n→ failed\n/m)
})

test('up shows what every project is at, on one line', async () => {
  using folder = temporaryFolder()
  const env = {
    HOME: folder.path,
    XDG_STATE_HOME: join(folder.path, 'state'),
    BERTH_PORT: '0',
    BERTH_PROJECT_PORTS: projectPorts(),
    BERTH_LOG_LEVEL: 'error',
  }
  for (const name of ['one', 'two']) {
    mkdirSync(join(folder.path, name))
    const build = 'while [ ! -e /workspace/go ]; do sleep 0.05; done'
    writeFileSync(join(folder.path, name, 'berth.json'), JSON.stringify({ build, start: 'bun s.js' }))
    writeFileSync(
      join(folder.path, name, 's.js'),
      'Bun.serve({ port: process.env.PORT, fetch: () => new Response("x") })',
    )
  }
  writeFileSync(
    join(folder.path, 'berth.yaml'),
    'projects: { one: { directory: one }, two: { directory: two } }\n',
  )
  await using terminal = onTerminal([...berthCommand, 'up'], { cwd: folder.path, env, columns: 80 })
  await terminal.shows(/(?:one|two): build … \d+ s · (?:one|two): build … \d+ s/)
  const ids = (await run(['servers', '-q'], { cwd: folder.path, env })).stdout.trim().split('\n')
  for (const id of ids)
    expect((await run(['files', 'write', id, 'go'], { cwd: folder.path, env })).exitCode).toBe(0)
  await terminal.shows('Following the logs.')
  const shown = statusLines(terminal.output())
  expect(shown.some((line) => line.includes(' · '))).toBe(true)
  terminal.type('\x03')
  expect(await terminal.exited).toBe(0)
})
