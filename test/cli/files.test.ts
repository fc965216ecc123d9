import { expect, test } from 'bun:test'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { command } from '../support/serve.ts'
import { serveForTests } from './command.ts'
import { onTerminal } from './terminal.ts'

const berth = await serveForTests()
const server = await berth.server()

const BINARY = new Uint8Array(70_000).map((_, at) => (at * 7919) % 256)
const TEXT = new TextEncoder().encode('\ufeffwith a mark\r\nand ö, no newline at the end')

test.each([
  ['binary', BINARY],
  ['text', TEXT],
  ['nothing', new Uint8Array()],
])('%s written from a file or from standard input is read back byte for byte', async (name, content) => {
  const local = join(berth.cwd, `${name}.local`)
  writeFileSync(local, content)
  const written = await berth.run(['files', 'write', server, `in/${name}`, `${name}.local`])
  expect(written.stdout).toBe(`Wrote in/${name} (${content.length} bytes).\n`)
  expect((await berth.run(['files', 'read', server, `in/${name}`])).bytes).toEqual(content)
  await berth.run(['files', 'put', server, `in/${name}`, '-'], { stdin: content })
  await berth.run(['files', 'cat', server, `in/${name}`, '-o', `${name}.back`])
  expect(new Uint8Array(readFileSync(join(berth.cwd, `${name}.back`)))).toEqual(content)
})

test('files are listed one a line and deleted; what is not there is an error', async () => {
  await berth.run(['files', 'write', server, 'listed/b.txt'], { stdin: TEXT })
  await berth.run(['files', 'write', server, 'listed/a b.txt'], { stdin: TEXT })
  const { stdout } = await berth.run(['files', 'ls', server])
  expect(stdout).toContain('listed/a b.txt\nlisted/b.txt\n')
  const answer = JSON.parse((await berth.run(['files', 'list', server, '--json'])).stdout)
  expect(answer.files).toContain('listed/b.txt')
  expect((await berth.run(['files', 'rm', server, 'listed/b.txt'])).stdout).toBe('Deleted listed/b.txt.\n')
  const gone = await berth.run(['files', 'read', server, 'listed/b.txt'])
  expect(gone).toMatchObject({ exitCode: 1, stdout: '' })
  expect(gone.stderr).toMatch(/^berth: .+ \(not_found\)\n$/)
})

test('--long lists sizes and times, and so does a terminal', async () => {
  await berth.run(['files', 'write', server, 'long/five.txt'], { stdin: new TextEncoder().encode('12345') })
  const { stdout } = await berth.run(['files', 'ls', server, '--long'])
  expect(stdout).toMatch(/^PATH +SIZE +MODIFIED$/m)
  expect(stdout).toMatch(/^long\/five\.txt +5 bytes +\d{4}-\d\d-\d\dT[\d:.]+Z$/m)
  expect((await berth.run(['files', 'ls', server, '-lq'])).stdout).toMatch(/^long\/five\.txt$/m)
  await using terminal = onTerminal([...command, 'files', 'ls', server], { cwd: berth.cwd })
  await terminal.shows(/long\/five\.txt +5 bytes +(?:now|\d+s ago)/)
  const json = JSON.parse((await berth.run(['files', 'ls', server, '--long', '--json'])).stdout)
  expect(json.details).toContainEqual({
    path: 'long/five.txt',
    size: 5,
    modified_at: expect.stringMatching(/^\d{4}-/),
  })
})

test('--all lists what is in .git too', async () => {
  await berth.run(['files', 'write', server, '.git/HEAD'], { stdin: TEXT })
  expect((await berth.run(['files', 'ls', server])).stdout).not.toContain('.git/HEAD')
  expect((await berth.run(['files', 'ls', server, '--all'])).stdout).toContain('.git/HEAD\n')
})

test('a local file that cannot be read or written is named', async () => {
  const absent = await berth.run(['files', 'write', server, 'x', 'absent.txt'])
  expect(absent).toMatchObject({ exitCode: 1, stdout: '' })
  expect(absent.stderr).toStartWith('berth: There is no file absent.txt.')
  await berth.run(['files', 'write', server, 'x'], { stdin: TEXT })
  const refused = await berth.run(['files', 'read', server, 'x', '-o', 'no/such/folder'])
  expect(refused.exitCode).toBe(1)
  expect(refused.stderr).toStartWith('berth: no/such/folder cannot be written: ')
})
