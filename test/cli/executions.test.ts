import { expect, setDefaultTimeout, test } from 'bun:test'
import { serveForTests } from './command.ts'

setDefaultTimeout(60_000)

const berth = await serveForTests()
const server = JSON.parse((await berth.run(['servers', 'create', '--json'])).stdout).id

const run = (...words: string[]) => berth.run(words)

/** Starts a command by `berth exec --detach`; resolves to what it prints. */
async function detach(command: string, ...options: string[]): Promise<string> {
  const { exitCode, stdout, stderr } = await run('exec', '--detach', ...options, server, command)
  expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' })
  return stdout.trim()
}

test('exec --detach prints the id alone, and the body with --json', async () => {
  const id = await detach('sleep 300')
  expect(id).toMatch(/^exe_[0-9a-z]{26}$/)
  const { stdout } = await run('exec', '--detach', '--json', server, 'sleep 300')
  const { execution } = JSON.parse(stdout)
  expect(execution).toMatchObject({ serverId: server, command: 'sleep 300', status: 'running' })
  const listed = JSON.parse((await run('executions', '--json')).stdout).executions
  expect(listed.map(({ id }: { id: string }) => id).slice(0, 2)).toEqual([execution.id, id])
  const shown = await run('executions', 'get', id)
  expect(shown.stdout).toMatch(/^State +running$/m)
  expect((await run('executions', 'delete', id)).stdout).toBe(`Ended ${id}.\n`)
  expect((await run('executions', 'get', id)).stdout).toMatch(/^State +exited with 143$/m)
  expect((await run('executions', 'delete', id)).stdout).toBe(`Removed ${id}.\n`)
  const gone = await run('executions', 'get', id)
  expect([gone.exitCode, gone.stderr]).toEqual([1, expect.stringContaining('berth executions')])
  await run('executions', 'delete', execution.id)
})

test("output -f prints both streams as they come, and ends with the command's code", async () => {
  const id = await detach('echo out; echo err >&2; sleep 0.2; echo more; exit 5')
  expect(await run('executions', 'output', id, '-f')).toMatchObject({
    exitCode: 5,
    stdout: 'out\nmore\n',
    stderr: 'err\n',
  })
  expect(await run('executions', 'output', id)).toMatchObject({
    exitCode: 0,
    stdout: 'out\nmore\n',
    stderr: 'err\n',
  })
  expect((await run('executions', 'output', id, '--stream', 'stderr')).stdout).toBe('')
  const [page] = (await run('executions', 'output', id, '--json')).stdout.split('\n')
  const { next } = JSON.parse(page ?? '')
  expect((await run('executions', 'output', id, '--after', next)).stdout).toBe('')
  const timed = await detach('sleep 300', '--timeout', '100ms')
  const over = await run('executions', 'output', timed, '-f')
  expect([over.exitCode, over.stderr]).toEqual([124, expect.stringContaining('ran out of time')])
})

test('output prints all that is kept, and says what is not', async () => {
  const id = await detach('seq 1 300000')
  const { exitCode, stdout, stderr } = await run('executions', 'output', id, '-f')
  expect([exitCode, stdout.startsWith('1\n2\n'), stdout.endsWith('\n299999\n300000\n')]).toEqual([
    0,
    true,
    true,
  ])
  const missing = 1_988_895 - stdout.length
  if (missing > 0) expect(stderr).toContain(`${missing} bytes of stdout are not kept`)
  const again = await run('executions', 'output', id)
  expect(again.stdout.length).toBe(65_536 + 1_048_576)
  expect(again.stderr).toContain('874783 bytes of stdout are not kept')
})

test('input writes text and what standard input has, and ends it', async () => {
  const id = await detach('cat', '-i')
  expect((await run('executions', 'input', id, 'one', '--line')).stdout).toBe('Wrote 4 bytes.\n')
  expect((await run('executions', 'input', id, 'two')).stdout).toBe('Wrote 3 bytes.\n')
  expect(
    (await berth.run(['executions', 'input', id, '--end'], { stdin: Buffer.from(' three\n') })).stdout,
  ).toBe('Wrote 7 bytes.\n')
  expect((await run('executions', 'output', id, '-f')).stdout).toBe('one\ntwo three\n')
  const late = await run('executions', 'input', id, 'x')
  expect([late.exitCode, late.stderr]).toEqual([1, expect.stringContaining('has ended')])
})

test('executions are offered where they are meant', async () => {
  const id = await detach('sleep 300')
  const { stdout } = await run('__complete', 'fish', '--', 'executions', 'output', '')
  expect(stdout).toContain(`${id}\trunning, sleep 300`)
  await run('executions', 'delete', id)
})

test('--detach goes with no terminal', async () => {
  const { exitCode, stderr } = await run('exec', '--detach', '-t', server, 'true')
  expect([exitCode, stderr]).toEqual([2, expect.stringContaining('terminals create')])
})
