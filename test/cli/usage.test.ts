import { expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Command } from 'commander'
import { defaultOf } from '../../src/cli/command-line.ts'
import { CATALOG } from '../../src/cli/commands/index.ts'
import type { ProcessContext } from '../../src/cli/process-context.ts'
import { createProgram, newSession, runProgram } from '../../src/cli/program.ts'
import { CONFIG_OPTIONS, environmentName } from '../../src/config/config.ts'
import { SCHEMA } from '../../src/storage/database.ts'
import { run, temporaryFolder } from './command.ts'

test('help goes to stdout, names every command and succeeds', async () => {
  for (const args of [['help'], ['--help'], ['-h']]) {
    const { exitCode, stdout, stderr } = await run(args)
    expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' })
    for (const command of ['serve', 'servers', 'exec', 'files', 'doctor', 'completion', 'version'])
      expect(stdout).toMatch(new RegExp(`^  ${command}\\b`, 'm'))
    expect(stdout).not.toContain('__')
  }
})

test('the help of serve shows every option with its variable', async () => {
  const { exitCode, stdout } = await run(['serve', '--help'])
  expect(exitCode).toBe(0)
  const text = stdout.replace(/\s+/g, ' ')
  for (const { name } of CONFIG_OPTIONS) {
    expect(text).toContain(`--${name}`)
    expect(text).toContain(`[${environmentName(name)}]`)
  }
  expect(text).toContain('[BERTH_CONFIG]')
})

/** The help of a command, as a program that is no terminal gets it. */
async function helpOf(words: readonly string[]): Promise<string> {
  const parts: string[] = []
  expect(
    await runProgram(
      [...words, '--help'],
      contextFor((part) => void parts.push(part)),
    ),
  ).toBe(0)
  return parts.join('')
}

function contextFor(print: (text: string) => void): ProcessContext {
  const sink = { isTTY: false, hasColors: false, write: async (text: unknown) => print(String(text)) }
  const stdin = { isTTY: false, bytes: async () => new Uint8Array(), stream: () => new Blob().stream() }
  return { env: {}, inherited: {}, cwd: '/', stdin, stdout: sink, stderr: sink }
}

test('the help of every command fits in 80 columns and says how it finds an instance at the end', async () => {
  const program = createProgram(
    newSession(
      contextFor(() => {}),
      CATALOG,
    ),
    CATALOG,
  )
  const walk = async (command: Command, path: string[]): Promise<void> => {
    const text = await helpOf(path)
    const wide = text.split('\n').filter((line) => line.length > 80)
    expect({ path, wide }).toEqual({ path, wide: [] })
    const [options, connection] = [text.indexOf('\nOptions:'), text.indexOf('\nConnection:')]
    if (connection >= 0) expect({ path, order: options < connection }).toEqual({ path, order: true })
    for (const next of command.commands.filter((one) => !one.name().startsWith('__')))
      await walk(next, [...path, next.name()])
  }
  await walk(program, [])
})

test('the page on the command line names every command', async () => {
  const commands = createProgram(
    newSession(
      contextFor(() => {}),
      CATALOG,
    ),
    CATALOG,
  ).commands.filter((one) => !one.name().startsWith('__'))
  const page = readFileSync(join(import.meta.dir, '../../docs/command-line.md'), 'utf8')
  // A row of the table; "wait", "env" and "stop" stand beside "list".
  const isNamed = (name: string) => new RegExp(`^\\|.*\`(berth )?${name}\\b.*\\|`, 'm').test(page)
  expect(commands.map((one) => one.name()).filter((name) => !isNamed(name))).toEqual([])
})

test('the help of run names only variables that set an option', async () => {
  const text = (await helpOf(['run'])).replace(/\s+/g, ' ')
  for (const name of ['HOST', 'PORT', 'DATA', 'EPHEMERAL', 'JSON', 'PROJECT_PORTS'])
    expect(text).not.toContain(`[BERTH_${name}]`)
  expect(text).toContain('[BERTH_PLAN]')
})

test('help explains the command that is named behind it, however deep', async () => {
  const [named, asked] = await Promise.all([run(['help', 'faults', 'add']), run(['faults', 'add', '--help'])])
  expect(named).toEqual(asked)
  expect(named.stdout).toStartWith('Usage: berth faults add')
})

test.each([
  ['projects', 'logs'],
  ['deployments', 'logs'],
  ['clock', 'advance'],
])('the help of %s %s says in which unit a duration without one is', async (noun, command) => {
  const { stdout } = await run([noun, command, '--help'])
  expect(stdout.replace(/\s+/g, ' ')).toContain('a number alone is seconds')
})

const WRONG: [args: string[], message: string][] = [
  [['servrs'], "unknown command 'servrs'\n(Did you mean servers?)"],
  [['servrs', '--help'], "unknown command 'servrs'\n(Did you mean servers?)"],
  [['nope'], "unknown command 'nope'\nRun"],
  [['help', 'servrs'], "unknown command 'servrs'\n(Did you mean servers?)"],
  [['faults', 'ad', '--help'], "unknown command 'ad'"],
  [['push'], 'unknown command \'push\'\n(Did you mean "berth projects push"?)'],
  [['server', 'create'], 'unknown command \'server\'\n(Did you mean "berth servers"?)'],
  [['ssh'], 'unknown command \'ssh\'\n(Did you mean "berth shell"?)'],
  [['destroy'], '(Did you mean "berth servers delete" or "berth projects delete"?)'],
  [['create'], '(Did you mean "berth servers create" or "berth projects create"?)'],
  [['help', 'status'], '(Did you mean "berth servers" or "berth doctor"?)'],
  [['watch'], '(Did you mean "berth deploy --watch" or "berth projects push --watch"?)'],
  [['servers', 'lst'], "unknown command 'lst'\n(Did you mean list?)"],
  [['files', 'second'], 'unknown command \'second\'\n(Did you mean "berth files list second"?)'],
  [['deployments', 'second'], '(Did you mean "berth deployments list second"?)'],
  [['terminals', 'second'], '(Did you mean "berth terminals list --server second"?)'],
  [['projects', 'show', 'web'], '(Did you mean "berth projects get"?)'],
  [['tasks', 'show'], '(Did you mean "berth tasks get"?)'],
  [['terminals', 'attach'], '(Did you mean "berth shell --attach"?)'],
  [['ps', 'kill', '1'], '(Did you mean "berth processes delete"?)'],
  [['keys', 'destroy', 'key_1'], '(Did you mean "berth keys delete"?)'],
  [['clock', 'foo'], '(Its commands are get, '],
  [['cp', 'notes.txt', 'second'], 'Did you mean second: for the server, or :second for'],
  [['sync', '.', 'second'], 'Did you mean second: for the server, or :second for'],
  [['serve', '--prot', '1'], "unknown option '--prot'\n(Did you mean --port?)"],
  [['--prot', '1'], "unknown option '--prot'\n(Did you mean --port?)"],
  [['serve', '--version'], "unknown option '--version'"],
  [['serve', '--json=no'], "unknown option '--json=no'"],
  [['serve', 'extra'], "too many arguments for 'serve'"],
  [['logs', 'shop'], 'berth projects logs PROJECT'],
  [['serve', '--port'], "option '--port <PORT>' argument missing"],
  [['serve', '--port', 'x'], '--port: expected a whole number from 0 to 65535, got "x".'],
  [
    ['serve', '--isolation', 'jail'],
    '--isolation: expected one of auto, bubblewrap, landlock, seatbelt, none, got "jail".',
  ],
  [['serve', '--api-key', 'secret'], '--api-key: expected sk_live_'],
  [['servers', 'create', '--tier', 'huge'], 'Allowed choices are small, medium, large.'],
  [['servers', 'rename'], "missing required argument 'LABEL'"],
  [['servers', 'update', 'srv_1'], 'Say what to change: --task or --region.'],
  [['servers', '--base-url', 'nonsense'], 'The base URL must look like http://'],
  [['--base-url', 'nonsense', 'servers'], 'The base URL must look like http://'],
  [['--json', '--base-url', 'nonsense', 'servers'], 'The base URL must look like http://'],
  [['--base-url=nonsense', 'servers', 'get', 'srv_1'], 'The base URL must look like http://'],
  [
    ['--data', '.', '--base-url', 'nonsense', 'exec', 'srv_1', '--', 'ls'],
    'The base URL must look like http://',
  ],
  [['exec', 'srv_1'], "missing required argument 'COMMAND'"],
  [['exec', '-la', 'ls'], "unknown option '-la'\nPut the command behind --: berth exec SERVER -- "],
  [['exec', 'srv_1', '--timeout', 'soon', '--', 'ls'], '--timeout: expected a duration such as 30s'],
  [['exec', 'srv_1', '--env', 'NAME', '--', 'ls'], '--env: expected NAME=VALUE, got "NAME".'],
  [['completion', 'tcsh'], 'expected one of bash, zsh, fish, got "tcsh".'],
]

test.each(WRONG)('wrong usage exits with 2 and says on stderr what is wrong: %j', async (args, message) => {
  const { exitCode, stdout, stderr } = await run(args)
  expect({ exitCode, stdout }).toEqual({ exitCode: 2, stdout: '' })
  expect(stderr).toStartWith('berth: ')
  expect(stderr).toContain(message)
})

/** What a wrong command line prints. */
async function errorOf(word: string): Promise<string> {
  const parts: string[] = []
  const context = contextFor((part) => void parts.push(part))
  expect(await runProgram([word], context)).toBe(2)
  return parts.join('')
}

test('every command that a synonym leads to exists, and no mistyped word leads to one that removes', async () => {
  for (const word of ['resett', 'rset', 'preset']) expect(await errorOf(word)).not.toMatch(/mean.*reset/)
  const words = 'attach delete dev download info init kill ls publish start tail upload'.split(' ')
  for (const word of words) {
    const [, meant = ''] = (await errorOf(word)).split('Did you mean ')
    const lines = [...(meant.split('?)')[0] ?? '').matchAll(/"berth ([^"]+)"/g)]
    expect({ word, count: lines.length }).not.toEqual({ word, count: 0 })
    for (const [, line = ''] of lines) expect(await helpOf(line.split(' '))).toStartWith('Usage: berth ')
  }
})

test('a refused API key is not repeated', async () => {
  const { stderr } = await run(['serve', '--api-key', 'very-secret'])
  expect(stderr).not.toContain('very-secret')
})

test('every group without a command runs a default one', async () => {
  const program = createProgram(
    newSession(
      contextFor(() => {}),
      CATALOG,
    ),
    CATALOG,
  )
  const nouns = program.commands.filter(({ commands }) => commands.length > 0)
  expect(nouns.filter((noun) => defaultOf(noun) === undefined)).toEqual([])
  using folder = temporaryFolder()
  const { exitCode, stderr } = await run(['files'], { cwd: folder.path })
  expect({ exitCode, stderr }).toEqual({ exitCode: 1, stderr: expect.stringContaining('No berth runs') })
})

test('a bad variable and a bad config file exit with 1 and are named', async () => {
  using folder = temporaryFolder()
  const variable = await run(['serve'], { cwd: folder.path, env: { BERTH_PORT: 'x' } })
  expect(variable.exitCode).toBe(1)
  expect(variable.stderr).toMatch(/^berth: BERTH_PORT: expected .*\n$/)
  const file = await run(['serve', '--config', 'none.json'], { cwd: folder.path })
  expect(file.exitCode).toBe(1)
  expect(file.stderr).toMatch(/^berth: The config file .*none\.json cannot be read: .*\n$/)
})

test('version prints berth, Bun and system, for people and for programs', async () => {
  const { version } = await Bun.file(`${import.meta.dir}/../../package.json`).json()
  for (const args of [['version'], ['--version'], ['-v']]) {
    const { exitCode, stdout } = await run(args)
    expect(exitCode).toBe(0)
    expect(stdout).toStartWith(`berth ${version} (Bun ${Bun.version}, ${process.platform}-${process.arch}`)
  }
  const { stdout } = await run(['version', '--json'])
  expect(JSON.parse(stdout)).toEqual({
    version,
    // Of an executable; from source it has none.
    commit: process.env.BERTH_TEST_EXECUTABLE ? expect.stringMatching(/^[0-9a-f]{12,}$/) : null,
    schema: SCHEMA,
    bun: Bun.version,
    system: `${process.platform}-${process.arch}`,
    libc: 'glibc',
    installed_by: null,
  })
})
