import { beforeEach, expect, test } from 'bun:test'
import { chmodSync, mkdirSync, rmSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { writeWhole } from '../support/files.ts'
import { until } from '../support/processes.ts'
import { serve, start } from './command.ts'
import { copies } from './copies.ts'

const { server, here, words, run, onServer } = copies()
beforeEach(() => mkdirSync(here('sub')))

const sync = (...args: string[]) => run(['sync', ...args])
const write = (path: string, content: string) => writeWhole(here(path), content)

test('sends what differs by content, and only that', async () => {
  write('a', 'a')
  write('sub/b c\nd', 'b')
  symlinkSync('a', here('link'))
  const target = `${server()}:app`
  expect((await sync('.', target)).stdout).toMatch(
    new RegExp(`^3 files sent: ${target} \\(\\d+ bytes(?: in \\S+ s)?\\)\n$`),
  )
  expect(await onServer('cat app/a app/link app/sub/*')).toBe('aab')
  await onServer('echo kept > app/other')
  expect((await sync('.', target)).stdout).toBe(`Nothing differs from ${target}.\n`)
  write('a', 'A')
  chmodSync(here('sub/b c\nd'), 0o755)
  const { stdout } = await sync('--json', '.', target)
  expect(JSON.parse(stdout)).toEqual({ sent: ['a', 'sub/b c\nd'], removed: [] })
  expect(await onServer('cat app/a app/other; stat -c %a app/sub/*')).toBe('Akept\n755\n')
})

test('--delete removes what is not here, but nothing that would not be sent', async () => {
  write('.gitignore', 'dist/\n*.log\n')
  write('a', 'a')
  write('.env', 'SECRET=1')
  const before =
    'mkdir -p dist old/deep node_modules; touch dist/x old/deep/y server.log .env node_modules/z old-file'
  await onServer(before)
  const { stdout, stderr } = await sync('--delete')
  expect(stdout).toMatch(
    new RegExp(`^2 files sent, 2 removed: ${server()}: \\(\\d+ bytes?(?: in \\S+ s)?\\)\n$`),
  )
  expect(stderr).toContain('.env (may hold secrets')
  expect(await onServer('ls -A')).toBe('.env\n.gitignore\na\ndist\nnode_modules\nserver.log\n')
})

test('a file takes the place of a directory with --delete', async () => {
  write('a', 'now a file')
  await onServer('mkdir a; touch a/x')
  expect((await sync('--delete')).exitCode).toBe(0)
  expect(await onServer('cat a')).toBe('now a file')
})

test('--watch sends each change until Ctrl-C, each line with its time', async () => {
  write('a', 'first')
  const child = start(words('sync', '--watch', '--delete'), { cwd: here() })
  let said = ''
  const reading = (async () => {
    for await (const text of child.stdout.pipeThrough(new TextDecoderStream())) said += text
  })()
  await until(async () => (await onServer('cat a')) === 'first', 'the directory is sent')
  write('a', 'second')
  write('sub/new', 'new')
  await until(async () => (await onServer('cat a sub/new')) === 'secondnew', 'the changes are sent')
  rmSync(here('sub/new'))
  await until(() => said.includes('1 removed'), 'the removal is sent')
  expect(await onServer('ls -A')).toBe('a\n')
  child.kill('SIGINT')
  expect(await child.exited).toBe(130)
  await reading
  const lines = said.trimEnd().split('\n')
  expect(lines[0]).toMatch(new RegExp(`^\\d\\d:\\d\\d:\\d\\d {2}a sent: ${server()}: \\(5 bytes\\)$`))
  expect(lines.at(-1)).toMatch(new RegExp(`^\\d\\d:\\d\\d:\\d\\d {2}1 removed: ${server()}:$`))
})

test('--watch says once that it waits for the instance and that it is back, and sends what changed', async () => {
  await using first = await serve()
  const serverId = await first.server()
  write('a', 'first')
  const child = start(['sync', '--data', join(first.cwd, '.berth'), '--watch'], { cwd: here() })
  let said = ''
  const reading = (async () => {
    for await (const text of child.stderr.pipeThrough(new TextDecoderStream())) said += text
  })()
  await until(() => said.includes('Watching'), 'the directory is sent')
  first.child.kill('SIGTERM')
  await first.child.exited
  // Nothing has changed yet: it is the stream of changes that tells.
  await until(() => said.includes('Waiting until it is back.\n'), 'the loss of the instance')
  write('a', 'second')
  await using second = await serve([], { cwd: first.cwd })
  await until(
    async () => (await second.run(['exec', serverId, 'cat a'])).stdout === 'second',
    'the change is sent',
  )
  await until(() => said.includes('The instance is back.\n'), 'that it is said')
  await second.run(['servers', 'delete', serverId, '--yes'])
  expect(await child.exited).toBe(1)
  await reading
  expect(said.split('Waiting until it is back.').length).toBe(2)
  expect(said.split('The instance is back.').length).toBe(2)
  expect(said).toContain(`berth: The server ${serverId} is gone: it was deleted, or the instance was reset.`)
})

test.each([
  [['missing'], 1, 'There is no directory'],
  [['.', 'plain'], 2, 'Expected SERVER:PATH as the target'],
  [['.', ':file'], 1, 'file on the server is not a directory'],
])('%j is refused with exit code %d', async (args, code, reason) => {
  await onServer('touch file')
  const { exitCode, stderr } = await sync(...args)
  expect({ exitCode, stderr }).toEqual({ exitCode: code, stderr: expect.stringContaining(reason) })
})
