import { expect, test } from 'bun:test'
import { Command } from 'commander'
import { addServeOptions, givenFlags } from '../../src/cli/commands/serve.ts'
import { loadConfig } from '../../src/config/load.ts'

/** The flags that a command line of `serve` gives. */
function flagsOf(...args: string[]): Record<string, unknown> {
  const serve = new Command('serve')
  addServeOptions(serve, [{ name: 'detach', description: '' }])
  serve.parse(args, { from: 'user' })
  return givenFlags(serve)
}

test.each([
  [[], {}],
  [['--json', '--detach'], { json: true, detach: true }],
  [['--port=8080', '--data', 'a b'], { port: '8080', data: 'a b' }],
  [['--port', '1', '--port', '2'], { port: '2' }],
  [['--json', '--no-json', '--idle-timeout=15m'], { json: false, 'idle-timeout': '15m' }],
])('flags have the names of options, and the last of several counts: %j', (args, flags) => {
  expect(flagsOf(...args)).toEqual(flags)
})

test('a flag that may be repeated adds to a list, whose values are read unchanged', () => {
  const flags = flagsOf('--fixtures', 'a:b.yaml', '--port', '1', '--fixtures=/c.json')
  const { fixtures } = loadConfig({ flags, env: {}, cwd: '/project' })
  expect(fixtures).toEqual(['/project/a:b.yaml', '/c.json'])
})
