import { expect, test } from 'bun:test'
import { parseServeFlags } from '../../src/cli/commands/serve-flags.ts'
import { givenFlags } from '../../src/cli/commands/serve-options.ts'
import type { ProcessContext } from '../../src/cli/process-context.ts'
import { createProgram, newSession } from '../../src/cli/program.ts'
import { loadConfig } from '../../src/config/load.ts'

const sink = { write: async () => {}, isTTY: false, hasColors: false }
const context: ProcessContext = {
  env: {},
  cwd: '/',
  stdin: { isTTY: false, bytes: async () => new Uint8Array(), stream: () => new Blob().stream() },
  stdout: sink,
  stderr: sink,
}

/** What the command-line library makes of the same line. */
async function byLibrary(args: string[]): Promise<Record<string, unknown>> {
  const program = createProgram(newSession(context))
  const serve = program.commands.find((command) => command.name() === 'serve')
  if (!serve) throw new Error('no serve')
  serve.action(() => {})
  await program.parseAsync(['serve', ...args], { from: 'user' })
  return givenFlags(serve)
}

test.each([
  [[]],
  [['--json']],
  [['--port', '0', '--ephemeral']],
  [['--detach', '--json']],
  [['--port=8080', '--data', 'a b', '--isolation', 'none']],
  [['--port', '1', '--port', '2']],
  [['--no-json', '--idle-timeout=15m']],
  [['--fixtures', 'a:b.yaml']],
  [['--fixtures', 'a.yaml', '--port', '1', '--fixtures=b.json', '--port', '2']],
  [['--json', '--no-json']],
  [['--config', 'x.json', '--host', '::1', '--api-key=sk_live_00000000', '--rng-seed', '7']],
  [['--public-host', 'box.local', '--log-level', 'silent', '--freeze', '2030-01-01T00:00:00Z']],
])('the short way to serve reads flags as the command-line library does: %j', async (args: string[]) => {
  const quick = parseServeFlags(['serve', ...args])
  expect({ ...quick }).toEqual(await byLibrary(args))
  expect({ ...parseServeFlags(args) }).toEqual({ ...quick })
})

test('a flag that may be repeated adds to a list, whose values are taken as they stand', () => {
  const flags = parseServeFlags(['serve', '--fixtures', 'a:b.yaml', '--fixtures', '/c.json'])
  const { fixtures } = loadConfig({ flags: flags ?? {}, env: {}, cwd: '/project' })
  expect(fixtures).toEqual(['/project/a:b.yaml', '/c.json'])
})

test.each([
  [['--help']],
  [['--prot', '1']],
  [['extra']],
  [['servers']],
  [['--version']],
  [['--port']],
  [['--json=1']],
  [['--no-detach']],
  [['--keep']],
  [['serve', 'x']],
])('everything that is not a plain serve is left to the library: %j', (args) => {
  expect(parseServeFlags(args)).toBeNull()
})
