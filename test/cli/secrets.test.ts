import { expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { until } from '../support/processes.ts'
import { command as berthCommand } from '../support/serve.ts'
import { run, serve, serveForTests } from './command.ts'
import { onTerminal } from './terminal.ts'

const berth = await serveForTests()
const server = await berth.server()
const project = JSON.parse((await berth.run(['projects', 'create', '--name', 'shop', '--json'])).stdout).id

const secrets = (...args: string[]) => berth.run(['secrets', ...args])
const piped = (text: string, ...args: string[]) =>
  berth.run(['secrets', ...args], { stdin: new TextEncoder().encode(text) })
/** What a command on the server is given under this name. */
const onServer = async (name: string) =>
  (await berth.run(['exec', server, `printf %s "\${${name}-unset}"`])).stdout

test('variables of a server are set, listed by name and removed, and no value is printed', async () => {
  const set = await secrets('set', 'ONE=va=lue-1', 'EMPTY=')
  expect(set).toMatchObject({ exitCode: 0, stdout: `Set ONE, EMPTY for ${server}.\n`, stderr: '' })
  expect([await onServer('ONE'), await onServer('EMPTY')]).toEqual(['va=lue-1', ''])
  expect((await secrets()).stdout).toBe('EMPTY\nONE\n')
  expect(JSON.parse((await secrets('list', '--json')).stdout)).toEqual({
    server_id: server,
    keys: ['EMPTY', 'ONE'],
  })
  const unset = await secrets('unset', 'ONE', 'EMPTY', '--server', server)
  expect(unset.stdout).toBe(`Removed ONE, EMPTY for ${server}.\n`)
  expect(await onServer('ONE')).toBe('unset')
  expect((await secrets('list')).stdout).toBe(`Nothing is set for ${server}.\n`)
})

test("a project's are its own; it is named by id, slug or name", async () => {
  expect((await secrets('set', 'OWN=1', '--project', 'shop')).stdout).toBe(`Set OWN for ${project}.\n`)
  const answer = JSON.parse((await secrets('set', 'TWO=2', '--project', project, '--json')).stdout)
  expect(answer).toEqual({ project_id: project, keys: ['OWN', 'TWO'] })
  expect(await onServer('OWN')).toBe('unset')
  await secrets('unset', 'OWN', 'TWO', '--project', 'shop')
})

test('says which apps get a change, and what still waits', async () => {
  await using other = await serve()
  await other.server()
  const create = async (name: string, files: Record<string, string>) => {
    for (const [path, text] of Object.entries(files)) await Bun.write(join(other.cwd, name, path), text)
    await other.run(['projects', 'create', name, '--public'])
  }
  const set = async (...args: string[]) => {
    const { stdout } = await other.run(['secrets', ...args])
    return stdout.slice(stdout.indexOf('\n') + 1)
  }
  const app = `Bun.serve({ port: process.env.PORT, fetch: () => new Response(process.env.TOKEN) })`
  await create('shop', { 'index.ts': app })
  expect(await set('set', 'TOKEN=one', '--project', 'shop')).toBe(
    'shop restarts with the change; the version before answers until then. "berth projects logs shop" shows whether it came up.\n',
  )
  await create('asks', {
    'index.ts': app,
    'berth.json': '{"env":{"A":{"required":true},"B":{"required":true}}}',
  })
  expect(await set('set', 'A=1', '--project', 'asks')).toContain(
    'asks waits for the variables that its code asks for: B.',
  )
  // On a busy machine the bring-up may be over by then.
  expect(await set('set', 'B=1', '--project', 'asks')).toMatch(
    /^(?:The bring-up of asks takes|asks restarts with) the change/,
  )
  await create('page', { 'index.html': 'x' })
  expect(await set('set', 'TOKEN=one', '--project', 'page')).toBe('')
  await until(
    async () => (await other.run(['projects', 'get', 'asks', '--json'])).stdout.includes('"ready"'),
    'asks',
  )
  expect(await set('set', 'REGION=eu')).toBe(
    'Apps restart with the change, and answer meanwhile: asks, shop.\n',
  )
  await other.run(['servers', 'stop'])
  expect(await set('unset', 'TOKEN', '--project', 'shop')).toBe('shop sleeps, and starts with the change.\n')
})

test('a variable is named once where snapshots are compared', async () => {
  await berth.run(['snapshot', 'save', 'before-one'])
  await secrets('set', 'ONE=1')
  expect((await berth.run(['snapshot', 'diff', 'before-one'])).stdout).toContain(`  + ${server} ONE\n`)
  await secrets('unset', 'ONE')
  expect(await secrets('unset', 'ONE')).toMatchObject({
    exitCode: 0,
    stdout: `ONE is not set for ${server}.\n`,
  })
})

test('a name alone takes its value from a pipe, without the newline at its end', async () => {
  expect((await piped('from a pipe\n', 'set', 'PIPED')).stdout).toBe(`Set PIPED for ${server}.\n`)
  expect(await onServer('PIPED')).toBe('from a pipe')
  await piped('two\nlines\r\n', 'set', 'PIPED')
  expect(await onServer('PIPED')).toBe('two\nlines')
  const empty = await piped('\n', 'set', 'PIPED')
  expect(empty.exitCode).toBe(1)
  expect(empty.stderr).toContain('There was no value for PIPED; nothing was set.')
  expect(await onServer('PIPED')).toBe('two\nlines')
  const several = await piped('x', 'set', 'A', 'B')
  expect(several.exitCode).toBe(2)
  expect(several.stderr).toContain('berth secrets import -')
})

test('at a terminal a name alone asks for its value and does not show it', async () => {
  await using terminal = onTerminal([...berthCommand, 'secrets', 'set', 'FIRST', 'GIVEN=x', 'SECOND'], {
    cwd: berth.cwd,
  })
  await terminal.shows('Value of FIRST (not shown): ')
  terminal.type('wrong\x15hidden-ö\x7fx\r')
  await terminal.shows('Value of SECOND (not shown): ')
  terminal.type('other-value\r')
  expect(await terminal.exited).toBe(0)
  expect(terminal.output()).not.toMatch(/wrong|hidden|other-value/)
  expect(await onServer('FIRST')).toBe('hidden-x')
  expect([await onServer('GIVEN'), await onServer('SECOND')]).toEqual(['x', 'other-value'])
})

test.each([
  ['Ctrl-C', '\x03'],
  ['Ctrl-D', '\x04'],
])('%s at the question sets nothing', async (_, key) => {
  await using terminal = onTerminal([...berthCommand, 'secrets', 'set', 'GIVEN_UP'], { cwd: berth.cwd })
  await terminal.shows('Value of GIVEN_UP (not shown): ')
  terminal.type(`half${key}`)
  expect(await terminal.exited).toBe(130)
  expect(terminal.output()).toContain('Given up; nothing was set.')
  expect(await onServer('GIVEN_UP')).toBe('unset')
})

const ENV_FILE = `# a comment
PLAIN=one two # a comment
  export QUOTED="line 1
line 2 = still it"
SINGLE='a # b'

LAST=z`

test.each([
  ['\n', 'of Unix'],
  ['\r\n', 'of Windows'],
])('a .env file with line ends %p (%s) is imported, from a pipe too', async (end) => {
  writeFileSync(join(berth.cwd, 'some.env'), ENV_FILE.replaceAll('\n', end))
  const { exitCode, stdout } = await secrets('import', 'some.env')
  expect({ exitCode, stdout }).toEqual({
    exitCode: 0,
    stdout: `Set PLAIN, QUOTED, SINGLE, LAST for ${server}.\n`,
  })
  expect(await onServer('PLAIN')).toBe('one two')
  expect(await onServer('QUOTED')).toBe('line 1\nline 2 = still it')
  expect(await onServer('SINGLE')).toBe('a # b')
  expect(await onServer('LAST')).toBe('z')
  await secrets('unset', 'PLAIN')
  expect((await piped(ENV_FILE, 'import', '-')).exitCode).toBe(0)
  expect(await onServer('PLAIN')).toBe('one two')
})

test.each([
  ['A=1\nvery secret\n', 'line 2 is not NAME=VALUE'],
  ['A=1\nvery-secret=2\n', 'line 2 is not NAME=VALUE'],
  ['A="very secret\n', 'is not closed with "'],
  ['# nothing\n', 'has no variable'],
])('a .env file %j is refused whole, without showing what it says', async (text, said) => {
  const { exitCode, stdout, stderr } = await piped(text, 'import', '-')
  expect({ exitCode, stdout }).toEqual({ exitCode: 1, stdout: '' })
  expect(stderr).toStartWith('berth: Standard input')
  expect(stderr).toContain(said)
  expect(stderr).not.toContain('secret')
  expect(await onServer('A')).toBe('unset')
})

test.each([
  [['set'], "missing required argument 'VARIABLE'"],
  [['set', 'A=1', 'very-secret'], 'Number 2 of the words is not NAME=VALUE or NAME'],
  [['set', 'TOKEN', 'very-secret'], 'Did you mean TOKEN=VALUE, as one word?'],
  [['set', 'A-B=very-secret'], '"A-B" is not a name'],
  [['set', '=very-secret'], 'Number 1 of the words is not NAME=VALUE or NAME'],
  [['unset', 'very-secret=1'], 'Number 1 of the words is not a name'],
  [['set', 'A=1', '--server', 'srv_x', '--project', 'prj_x'], 'not both'],
  [['set', 'A=1', '--project'], 'argument missing'],
])('wrong usage: secrets %p', async (args, said) => {
  const { exitCode, stdout, stderr } = await secrets(...args)
  expect({ exitCode, stdout }).toEqual({ exitCode: 2, stdout: '' })
  expect(stderr).toContain(said)
  expect(stderr).not.toContain('secret=')
  expect(stderr).not.toContain('very-secret')
})

test('a file, a project and a server that are not there are named', async () => {
  expect((await secrets('import', 'absent.env')).stderr).toStartWith('berth: There is no file absent.env.')
  expect((await secrets('set', 'A=1', '--project', 'none')).stderr).toStartWith(
    'berth: No project has "none"',
  )
  expect((await secrets('set', 'A=1', '--server', 'srv_none')).stderr).toMatch(/srv_none.*\(not_found\)\n$/)
})

test('without a server, or with several, it says what to type', async () => {
  await using other = await serve()
  const none = await run(['secrets', 'set', 'A=1'], { cwd: other.cwd })
  expect(none).toMatchObject({
    exitCode: 1,
    stderr: 'berth: There is no server yet. Provision one with "berth servers create".\n',
  })
  const ids = [await other.server(), await other.server()]
  const { exitCode, stderr } = await run(['secrets', 'set', 'A=1'], { cwd: other.cwd })
  expect(exitCode).toBe(1)
  for (const said of ['There are 2 servers', ...ids, '--server SERVER, or a project with --project'])
    expect(stderr).toContain(said)
})
