import { afterEach, beforeEach, expect, test } from 'bun:test'
import { chmodSync, mkdirSync, rmSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { writeWhole } from '../support/files.ts'
import { until } from '../support/processes.ts'
import { bareEnvironment, run, serve, serveForTests, start } from './command.ts'

let server: string
const berth = await serveForTests()
beforeEach(async () => {
  server = await berth.server()
})
afterEach(async () => {
  await berth.run(['servers', 'delete', server])
  rmSync(join(berth.cwd, 'app'), { recursive: true, force: true })
})

/** Writes files into the folder `app` of the working directory. */
function write(files: Record<string, string | Uint8Array>): void {
  for (const [path, content] of Object.entries(files)) writeWhole(join(berth.cwd, 'app', path), content)
}

const exec = async (command: string) => (await berth.run(['exec', server, command])).stdout
const published = (stdout: string) =>
  /^Published srv_\w+ at (http:\S+) \(.+\)\n$/.exec(stdout)?.[1] ?? `none: ${stdout}`
const BINARY = new Uint8Array(70_000).map((_, at) => (at * 7919) % 256)

test('a folder is uploaded, published and answers; publishing again keeps the URL', async () => {
  write({ 'index.html': '<h1>one</h1>', 'data.bin': BINARY, '.env': 'A=1', 'node_modules/x/index.js': '' })
  const first = await berth.run(['deploy', 'app'])
  expect(first.exitCode).toBe(0)
  expect(first.stderr).toBe(
    'Uploaded app: 2 files, 70.0 KB.\n' +
      'Left out: node_modules/; .env (may hold secrets; berth secrets import .env sends the variables in it).\n',
  )
  const url = published(first.stdout)
  expect(await (await fetch(url)).text()).toBe('<h1>one</h1>')
  expect(await (await fetch(`${url}data.bin`)).bytes()).toEqual(BINARY)
  write({ 'index.html': '<h1>two</h1>' })
  const again = JSON.parse((await berth.run(['deploy', 'app', '--json'])).stdout)
  expect(again).toMatchObject({ url, status: 'live', app: { kind: 'static files' }, files: 2 })
  expect(await (await fetch(url)).text()).toBe('<h1>two</h1>')
  expect((await berth.run(['deployments'])).stdout).toMatch(new RegExp(`^URL +STATUS\n${url} +live\n$`))
})

test('permissions and links come along, whatever the names are', async () => {
  write({ "it's/run me.sh": '#!/bin/sh\necho ran', 'plain.txt': 'x', '-n': 'dash', 'index.html': '' })
  chmodSync(join(berth.cwd, "app/it's/run me.sh"), 0o755)
  mkdirSync(join(berth.cwd, 'app/links only'))
  symlinkSync("../it's", join(berth.cwd, 'app/links only/-l'))
  for (const _ of ['once', 'over what is there']) {
    expect((await berth.run(['deploy', 'app'])).stderr).toStartWith('Uploaded app: 5 files')
    expect(await exec("'./links only/-l/run me.sh'; stat -c %a plain.txt; readlink './links only/-l'")).toBe(
      "ran\n644\n../it's\n",
    )
  }
})

test('without DIR the workspace is published as it is', async () => {
  await exec('mkdir public && echo from the workspace > public/index.html')
  const { stdout, stderr } = await berth.run(['deploy', '--server', server])
  expect(stderr).toBe('')
  expect(await (await fetch(published(stdout))).text()).toBe('from the workspace\n')
})

test('what is in the workspace stays, unless --clean removes it; projects stay always', async () => {
  write({ 'index.html': 'x', 'kept/a.txt': 'a', file: 'was a folder', 'folder/x': 'was a file' })
  await exec(
    'mkdir -p kept old/deep node_modules/x file projects/none && touch kept/b.txt old/deep/f node_modules/x/i file/y folder projects/none/f',
  )
  const { slug } = JSON.parse((await berth.run(['projects', 'create', '--json'])).stdout)
  await exec(`mkdir -p projects/${slug} && touch projects/${slug}/f`)
  rmSync(join(berth.cwd, 'app/file'))
  rmSync(join(berth.cwd, 'app/folder'), { recursive: true })
  expect((await berth.run(['deploy', 'app'])).stderr).toBe('Uploaded app: 2 files, 2 bytes.\n')
  expect(await exec('ls kept old/deep/f node_modules/x/i')).toBe(
    'node_modules/x/i\nold/deep/f\n\nkept:\na.txt\nb.txt\n',
  )
  write({ file: 'was a folder', 'folder/x': 'was a file' })
  expect((await berth.run(['deploy', 'app', '--clean'])).stderr).toBe(
    `Removed 6 other files from ${server}.\nUploaded app: 4 files, 24 bytes; 2 of them unchanged.\n`,
  )
  const { stdout } = await berth.run(['files', 'list', server, '--all'])
  expect(stdout.trimEnd().split('\n')).toEqual(
    ['file', 'folder/x', 'index.html', 'kept/a.txt', `projects/${slug}/f`].sort(),
  )
  expect(await exec('ls -d old node_modules projects/none 2>/dev/null')).toBe('')
})

test('an app that does not come up is reported with the end of its log, and the published version stays', async () => {
  const app = `Bun.serve({ port: process.env.PORT, hostname: process.env.HOST, fetch: () => new Response('up') })`
  write({ 'index.ts': app })
  const url = published((await berth.run(['deploy', 'app'])).stdout)
  write({ 'berth.json': '{"start":"echo no luck today; exit 3"}' })
  const { exitCode, stdout, stderr } = await berth.run(['deploy', 'app'])
  expect({ exitCode, stdout }).toEqual({ exitCode: 1, stdout: '' })
  expect(stderr).toContain('no luck today')
  expect(stderr).toBe(
    `berth: The app did not start: it ended with exit code 3. The end of its log (compute_backend_error):\nno luck today\nThe version before goes on, with its files.\nThe whole log: berth deployments logs ${server}\n`,
  )
  expect(await (await fetch(url)).text()).toBe('up')
})

test('a file that is too large for a request arrives whole', async () => {
  const huge = new Uint8Array(40_000_000).map((_, at) => at % 251)
  write({ 'index.html': 'x', 'huge.bin': huge })
  expect((await berth.run(['deploy', 'app'])).exitCode).toBe(0)
  const sum = new Bun.CryptoHasher('sha256').update(huge).digest('hex')
  expect(await exec('sha256sum huge.bin')).toStartWith(sum)
})

test('a file that fits just so arrives whole', async () => {
  const size = Math.floor(((32 * 1024 * 1024 - 16 * 1024) * 3) / 4)
  write({ 'index.html': 'x', 'large.bin': new Uint8Array(size).fill(200) })
  expect((await berth.run(['deploy', 'app'])).exitCode).toBe(0)
  expect(await exec('stat -c %s large.bin')).toBe(`${size}\n`)
})

test('a refusal amid the upload names the file and publishes nothing', async () => {
  write({ 'index.html': 'x', 'blocked/a.txt': 'x' })
  await exec('touch blocked')
  const { exitCode, stderr } = await berth.run(['deploy', 'app'])
  expect(exitCode).toBe(1)
  expect(stderr).toBe(
    'berth: app was not sent, and nothing published: "blocked" is not a directory. (bad_request)\n',
  )
  expect(await exec('ls')).toBe('blocked\n')
  expect((await berth.run(['deployments'])).stdout).toBe(
    `${server} publishes nothing yet. Publish its workspace with "berth deploy".\n`,
  )
})

test.each([
  [['deploy', '--clean'], 2, 'name the directory'],
  [['deploy', 'absent'], 1, 'There is no directory '],
  [['deploy', '--server', 'srv_none'], 1, '(not_found)'],
])('%j is refused', async (args, code, said) => {
  const { exitCode, stdout, stderr } = await berth.run(args)
  expect({ exitCode, stdout }).toEqual({ exitCode: code, stdout: '' })
  expect(stderr).toContain(said)
})

test('an empty folder is not published, and it is said what was left out', async () => {
  write({ '.env': 'A=1' })
  const { exitCode, stderr } = await berth.run(['deploy', 'app'])
  expect(exitCode).toBe(1)
  expect(stderr).toMatch(/^berth: app has no file to send\. Left out: \.env .*\n$/)
})

test('without a server, or with several, it says what to type', async () => {
  await using other = await serve()
  expect((await run(['deploy'], { cwd: other.cwd })).stderr).toContain('berth servers create')
  await other.server()
  await other.server()
  expect((await run(['deployments'], { cwd: other.cwd })).stderr).toContain('There are 2 servers')
})

test('a second upload sends only what differs', async () => {
  write({ 'index.html': 'one', 'a/b.txt': 'same', 'c.txt': 'same' })
  await berth.run(['deploy', 'app'])
  await exec('chmod 444 a/b.txt && touch -d 2001-01-01 a/b.txt')
  write({ 'index.html': 'two' })
  const again = await berth.run(['deploy', 'app'])
  expect(again.stderr).toBe('Uploaded app: 3 files, 11 bytes; 2 of them unchanged.\n')
  expect(await exec('stat -c %Y a/b.txt')).toBe('978307200\n')
  expect(await (await fetch(published(again.stdout))).text()).toBe('two')
})

test('--watch publishes each change, removes what is gone, and ends with Ctrl-C', async () => {
  write({ 'index.html': 'one', 'old.html': '' })
  const child = start(['deploy', 'app', '--watch'], { cwd: berth.cwd, env: bareEnvironment() })
  let said = ''
  const read = async (stream: ReadableStream<Uint8Array>) => {
    for await (const chunk of stream) said += new TextDecoder().decode(chunk)
  }
  const reading = Promise.all([read(child.stdout), read(child.stderr)])
  await until(() => said.includes('Watching'), 'the first publication')
  const url = / at (http:\S+)\n/.exec(said)?.[1] ?? ''
  expect(await (await fetch(url)).text()).toBe('one')
  write({ 'index.html': 'two' })
  rmSync(join(berth.cwd, 'app/old.html'))
  await until(() => / live in [\d.]+ m?s at http:\S+\n.* live in /s.test(said), 'the second publication')
  await until(async () => (await (await fetch(url)).text()) === 'two', 'the change')
  await until(async () => (await fetch(`${url}old.html`)).status === 404, 'the removal')
  child.kill('SIGINT')
  await reading
  expect(await child.exited).toBe(130)
})

test('--watch publishes what changed while the instance was down, and ends once its server is gone', async () => {
  await using first = await serve()
  const serverId = await first.server()
  const page = join(first.cwd, 'app/index.html')
  writeWhole(page, 'one')
  const child = start(['deploy', 'app', '--watch'], { cwd: first.cwd, env: bareEnvironment() })
  let [out, said] = ['', '']
  const reading = Promise.all([
    (async () => {
      for await (const text of child.stdout.pipeThrough(new TextDecoderStream())) out += text
    })(),
    (async () => {
      for await (const text of child.stderr.pipeThrough(new TextDecoderStream())) said += text
    })(),
  ])
  await until(() => said.includes('Watching'), 'the first publication')
  first.child.kill('SIGTERM')
  await first.child.exited
  writeWhole(page, 'two')
  await until(() => said.includes('Waiting until it is back.\n'), 'the loss of the instance')
  // How often it has published before depends on when the instance was lost.
  const before = out.length
  await using second = await serve([], { cwd: first.cwd })
  await until(() => out.slice(before).includes(' live in '), 'the next publication')
  const url = / at (http:\S+)\n$/.exec(out)?.[1] ?? ''
  expect(await (await fetch(url)).text()).toBe('two')
  expect(said).toContain('The instance is back.\n')
  // Once each, though the loss is noticed without a change too.
  expect(said.split('Waiting until it is back.').length).toBe(2)
  expect(said.split('The instance is back.').length).toBe(2)
  await second.run(['servers', 'delete', serverId, '--yes'])
  expect(await child.exited).toBe(1)
  await reading
  expect(said).toEndWith(
    `berth: The server ${serverId} is gone: it was deleted, or the instance was reset. The directory is watched no longer.\n`,
  )
})

test('what is published is taken down, and its files stay', async () => {
  expect((await berth.run(['deployments', 'delete'])).stderr).toContain('not_found')
  write({ 'index.html': 'up' })
  const url = published((await berth.run(['deploy', 'app'])).stdout)
  const { exitCode, stdout } = await berth.run(['deployments', 'delete'])
  expect([exitCode, stdout]).toEqual([0, `Nothing is published at ${url} any more. The files stay.\n`])
  expect(await exec('ls')).toBe('index.html\n')
  expect((await berth.run(['deployments'])).stdout).toContain('publishes nothing yet')
})

const serving = (text: string) =>
  `Bun.serve({ port: process.env.PORT, fetch: () => new Response(${JSON.stringify(text)}) })`

test('a version that does not come up leaves the one before in place, files included, also over a restart', async () => {
  write({ 'index.ts': serving('one'), 'kept.txt': 'kept', 'gone.txt': 'gone' })
  const url = published((await berth.run(['deploy', 'app'])).stdout)
  await exec('chmod 700 kept.txt; echo made > made.txt')
  write({ 'index.ts': 'throw new Error("broken on purpose")', 'kept.txt': 'other', 'new.txt': 'new' })
  rmSync(join(berth.cwd, 'app/gone.txt'))
  const failed = await berth.run(['deploy', 'app', '--clean'])
  expect(failed).toMatchObject({ exitCode: 1, stdout: '' })
  expect(failed.stderr).toContain('broken on purpose')
  expect(failed.stderr).toContain('\nThe version before goes on, with its files.\n')
  expect(await exec('cat kept.txt gone.txt made.txt; stat -c %a kept.txt; ls')).toBe(
    'keptgonemade\n700\ngone.txt\nindex.ts\nkept.txt\nmade.txt\n',
  )
  await berth.run(['servers', 'restart', server])
  await until(async () => (await (await fetch(url)).text()) === 'one', 'the version before')
})

/** Never listens, and ends on request. */
const WAITING = `import { existsSync, writeFileSync } from 'node:fs'
  writeFileSync('begun', '')
  setInterval(() => existsSync('enough') && process.exit(5), 20)`

test('Ctrl-C ends the command and says what goes on; the files are put back if the version does not come up', async () => {
  write({ 'index.ts': serving('one') })
  await berth.run(['deploy', 'app'])
  write({ 'index.ts': WAITING })
  const child = start(['deploy', 'app'], { cwd: berth.cwd, env: bareEnvironment() })
  let said = ''
  const reading = (async () => {
    for await (const chunk of child.stderr) said += new TextDecoder().decode(chunk)
  })()
  await until(async () => (await exec('ls')).includes('begun'), 'the start of the new version')
  child.kill('SIGINT')
  await reading
  expect(await child.exited).toBe(130)
  expect(said).toEndWith(
    `\nberth: if all files had arrived, the publication goes on. If it fails, the version before goes on, with its files. Look at it with: berth deployments logs ${server} -f\n`,
  )
  await exec('touch enough')
  await until(async () => (await exec('cat index.ts')) === serving('one'), 'the files of before')
})

/** Responds with what only this process has in memory. */
const REMEMBERING = `const memory = crypto.randomUUID()
  Bun.serve({ port: process.env.PORT, fetch: () => new Response(memory) })`

test('a version that does not come up leaves the one before running, with what it has in memory', async () => {
  write({ 'index.ts': REMEMBERING, 'package.json': '{"scripts":{"start":"bun index.ts"}}' })
  const url = published((await berth.run(['deploy', 'app'])).stdout)
  const ask = async () => await (await fetch(url)).text()
  const memory = await ask()
  write({ 'index.ts': 'throw new Error("broken on purpose")' })
  expect((await berth.run(['deploy', 'app'])).exitCode).toBe(1)
  expect(await ask()).toBe(memory)
  expect((await berth.run(['deployments'])).stdout).toContain('live, update failed')
  const { stdout: log } = await berth.run(['deployments', 'logs', server])
  expect(log).toContain('The files of the version before are back in place.')
  expect(log).not.toContain('SIGTERM')
  write({ 'index.ts': serving('fixed') })
  await berth.run(['deploy', 'app'])
  expect((await berth.run(['deployments'])).stdout).toMatch(/ live$/m)
})

test('files are put back though the client is gone', async () => {
  write({ 'index.ts': REMEMBERING })
  const url = published((await berth.run(['deploy', 'app'])).stdout)
  const memory = await (await fetch(url)).text()
  write({ 'index.ts': WAITING })
  const child = start(['deploy', 'app'], { cwd: berth.cwd, env: bareEnvironment() })
  await until(async () => (await exec('ls')).includes('begun'), 'the start of the new version')
  child.kill('SIGKILL')
  await child.exited
  await exec('touch enough')
  await until(async () => (await exec('cat index.ts')) === REMEMBERING, 'the files of before')
  expect(await (await fetch(url)).text()).toBe(memory)
})

test('a deploy takes the place of one that has not come up, and the live version goes on meanwhile', async () => {
  write({ 'index.ts': REMEMBERING })
  const url = published((await berth.run(['deploy', 'app'])).stdout)
  const memory = await (await fetch(url)).text()
  write({ 'index.ts': WAITING })
  const first = start(['deploy', 'app'], { cwd: berth.cwd, env: bareEnvironment() })
  await until(async () => (await exec('ls')).includes('begun'), 'the start of the new version')
  write({ 'index.ts': 'throw new Error("broken on purpose")' })
  expect((await berth.run(['deploy', 'app'])).stderr).toContain('broken on purpose')
  expect(await new Response(first.stderr).text()).toContain('A later deploy has taken its place.')
  expect(await first.exited).toBe(1)
  expect(await (await fetch(url)).text()).toBe(memory)
  expect(await exec('cat index.ts')).toBe(REMEMBERING)
})

test('a version that fails under --watch is reported once, and the next is compared with the restored one', async () => {
  write({ 'index.ts': serving('one') })
  const child = start(['deploy', 'app', '--watch'], { cwd: berth.cwd, env: bareEnvironment() })
  let said = ''
  const read = async (stream: ReadableStream<Uint8Array>) => {
    for await (const chunk of stream) said += new TextDecoder().decode(chunk)
  }
  const reading = Promise.all([read(child.stdout), read(child.stderr)])
  await until(() => said.includes('Watching'), 'the first publication')
  const url = / at (http:\S+)\n/.exec(said)?.[1] ?? ''
  write({ 'index.ts': 'throw new Error("broken on purpose")' })
  await until(() => said.includes('goes on, with its files'), 'the failure')
  expect(await (await fetch(url)).text()).toBe('one')
  write({ 'index.ts': serving('two') })
  await until(() => said.split(' live in ').length === 3, 'the fixed version')
  expect(await (await fetch(url)).text()).toBe('two')
  expect(said.split('goes on, with its files').length).toBe(2)
  write({ 'index.ts': 'throw new Error("broken once more")' })
  await until(() => said.split('goes on, with its files').length === 3, 'the second failure')
  expect((await berth.run(['deployments', 'ls', server])).stdout).toContain('live, update failed')
  write({ 'index.ts': serving('two') })
  await until(() => said.includes('Nothing has changed, live in '), 'the return to what is live')
  expect((await berth.run(['deployments', 'ls', server])).stdout).not.toContain('update failed')
  child.kill('SIGINT')
  await reading
})

test('the log of what is published says why it did not come up; the failure names the command', async () => {
  write({ 'index.ts': 'throw new Error("broken on purpose")' })
  const { exitCode, stderr } = await berth.run(['deploy', 'app'])
  expect(exitCode).toBe(1)
  expect(stderr).toContain(`The whole log: berth deployments logs ${server}`)
  const logs = await berth.run(['deployments', 'logs', server])
  expect(logs.stdout).toContain('broken on purpose')
  const since = await berth.run(['deployments', 'logs', server, '--since', '1h', '--timestamps'])
  expect(since.stdout).toMatch(/^\d{4}-\d\d-\d\dT[\d:.]+Z {2}berth/)
  expect((await berth.run(['deployments', 'logs', server, '--since', 'never'])).stderr).toStartWith(
    'berth: --since: expected a time',
  )
})
