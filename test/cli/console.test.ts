import { expect, test } from 'bun:test'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { command as berthCommand } from '../support/serve.ts'
import { run, temporaryFolder } from './command.ts'
import { onTerminal } from './terminal.ts'

/** A `berth serve` on a terminal, up to its banner. */
async function served(...args: string[]) {
  const folder = temporaryFolder()
  const terminal = onTerminal([...berthCommand, 'serve', '--port', '0', ...args], { cwd: folder.path })
  await terminal.shows('Stop with q or Ctrl-C')
  const url = /API +(\S+)/.exec(Bun.stripANSI(terminal.output()))?.[1] ?? ''
  return {
    terminal,
    url,
    berth: (...words: string[]) => run(words, { cwd: folder.path }),
    async [Symbol.asyncDispose]() {
      await terminal[Symbol.asyncDispose]()
      folder[Symbol.dispose]()
    },
  }
}

test('berth serve on a terminal prints a line for each request: caller, operation and result', async () => {
  await using serving = await served()
  const { terminal, berth, url } = serving
  terminal.type('?')
  await terminal.shows('reset to just-started')
  // The first one that it shows tells that it follows.
  while (!/401\S* +\d+ ms +GET +\/servers +\S*servers\.list/.test(terminal.output())) {
    await fetch(`${url}/servers`, { headers: { authorization: 'Bearer nothing' } })
    await Bun.sleep(20)
  }
  await berth('servers', 'create')
  await terminal.shows(/201\S* +\d+ ms +POST +\/servers +\S*servers\.create +cli/)
  expect(terminal.output()).not.toContain('"region"')
  terminal.type('l')
  await terminal.shows('Bodies are shown.')
  await berth('servers')
  await terminal.shows('"region": "us-east"')
  terminal.type('q')
  expect(await terminal.exited).toBe(0)
})

test('its keys clear, open and reset; what is kept is not reset before a yes', async () => {
  await using serving = await served()
  const { terminal, berth } = serving
  const { stdout: created } = await berth('servers', 'create', '--json')
  terminal.type('c')
  await terminal.shows('\x1b[2J')
  terminal.type('o')
  await terminal.shows(/Open this within five minutes: http:\S+\/signin\/link\/\w+/)
  terminal.type('r')
  await terminal.shows('[y/N] ')
  terminal.type('n')
  await terminal.shows('no\r\n')
  expect((await berth('servers', '-q')).stdout).toBe(`${JSON.parse(created).id}\n`)
  terminal.type('r')
  await terminal.shows(/\[y\/N\] .*\[y\/N\] /s)
  terminal.type('y')
  await terminal.shows(/Reset in \d+ ms\./)
  expect((await berth('servers', '-q')).stdout).toBe('')
  await terminal.shows(/servers\.list +cli[\s\S]*Reset in[\s\S]*servers\.list +cli/)
  terminal.type('\x03')
  expect(await terminal.exited).toBe(0)
})

test('an instance that keeps nothing is reset at once', async () => {
  await using serving = await served('--ephemeral')
  serving.terminal.type('r')
  await serving.terminal.shows(/Reset in \d+ ms\./)
  expect(serving.terminal.output()).not.toContain('[y/N]')
  serving.terminal.type('q')
  expect(await serving.terminal.exited).toBe(0)
})

test('reports a new data directory below another one, with how to use that one', async () => {
  using folder = temporaryFolder()
  const [above, below] = [join(folder.path, '.berth'), join(folder.path, 'app')]
  for (const path of [above, below]) mkdirSync(path)
  await using terminal = onTerminal([...berthCommand, 'serve', '--port', '0'], { cwd: below })
  await terminal.shows(`${join(below, '.berth')} is new; ${above} is left alone.`)
  terminal.type('q')
  expect(await terminal.exited).toBe(0)
})
