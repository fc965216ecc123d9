import { expect, test } from 'bun:test'
import { readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Client } from '../../src/cli/client.ts'
import { Pusher } from '../../src/cli/projects/pusher.ts'
import type { CliSession } from '../../src/cli/session.ts'
import { writeWhole } from '../support/files.ts'
import { until } from '../support/processes.ts'
import { bareEnvironment, serve, serveForTests, start } from './command.ts'
import { projectCommands, told } from './project-commands.ts'

const berth = await serveForTests(['--plan', '{"projects":{"small":100}}'])
const server = await berth.server()

const { projects, json, write } = projectCommands(() => berth)
const at = (path: string) => join(berth.cwd, path)
const text = async (url: string) => (await fetch(url)).text()
const ls = async (slug: string) => (await berth.run(['exec', server, `ls -A projects/${slug}`])).stdout

const app = (answer: string) =>
  `Bun.serve({ port: process.env.PORT, hostname: process.env.HOST, fetch: () => new Response('${answer}') })`

/** Runs `push --watch` until it has said something, and then until the test has ended it. */
function watching(args: string[]) {
  const child = start(['projects', 'push', '--watch', ...args], { cwd: berth.cwd, env: bareEnvironment() })
  let said = ''
  const read = async (stream: ReadableStream<Uint8Array>) => {
    for await (const chunk of stream) said += new TextDecoder().decode(chunk)
  }
  const reading = Promise.all([read(child.stdout), read(child.stderr)])
  return {
    says: (wanted: string | RegExp) =>
      until(
        () => (typeof wanted === 'string' ? said.includes(wanted) : wanted.test(said)),
        `${wanted} in: ${said}`,
      ),
    said: () => said,
    forget() {
      said = ''
    },
    async end() {
      child.kill('SIGINT')
      await reading
      return child.exited
    },
  }
}

test('a directory becomes a project with a URL; then only what differs is sent, and it says what was done', async () => {
  write('shop', {
    'index.ts': app('one'),
    'lib/a.ts': '',
    'lib/b.ts': '',
    '.gitignore': '*.log\n',
    'x.log': '',
  })
  const first = await projects('push', 'shop')
  expect(first.exitCode).toBe(0)
  const { id, url, addresses } = told(first)
  expect(first.stdout).toBe(`Created ${id} (shop, slug shop) on ${server}.\nshop is ready at ${addresses}\n`)

  write('shop', { 'index.ts': app('two'), 'new.ts': '' })
  rmSync(at('shop/lib'), { recursive: true })
  symlinkSync('new.ts', at('shop/link.ts'))
  const second = await projects('push', 'shop')
  expect(second.stdout).toMatch(
    /^3 files sent, 2 removed, restarted in [\d.]+ m?s: shop at http:\S+ and http:\S+\n$/,
  )
  expect(second.stderr).toMatch(/→ start\n.*→ healthcheck\n.*→ ready\n/s)
  expect(await text(url)).toBe('two')
  expect(await ls('shop')).toBe('.gitignore\nindex.ts\nlink.ts\nnew.ts\n')

  expect((await projects('push', 'shop')).stdout).toBe(`Nothing has changed: shop at ${addresses}\n`)
  // The nearest directory that was sent is meant, also below it.
  write('shop', { 'deep/er/x.ts': '' })
  const below = await berth.run(['projects', 'push'], { cwd: at('shop/deep/er') })
  expect(below.stdout).toMatch(/^1 file sent, restarted/)
})

test('a directory that was created is pushed to the same project; --project names another', async () => {
  write('site', { 'index.html': 'one' })
  const { id, url } = told(await projects('create', 'site', '--public'))
  write('site', { 'index.html': 'two' })
  expect((await projects('push', 'site')).stdout).toMatch(
    /^1 file sent, live in [\d.]+ m?s: site at http:\S+ and http:\/\/site\.localhost:\d+\/\n$/,
  )
  expect(await text(url)).toBe('two')
  const { id: other } = await json('create', '--name', 'other', '--public')
  const pushed = await json('push', 'site', '--project', 'other')
  expect(pushed).toMatchObject({ written: 1, removed: 0, began: 'start', project: { id: other } })
  // From now on the directory stands for that one.
  expect((await json('push', 'site')).project.id).toBe(other)
  expect((await json('push', 'site', '--project', id)).project.id).toBe(id)
})

test('a name that another project has is not taken by accident, and a project that is gone is made again', async () => {
  write('again/copy', { 'index.html': 'x' })
  await json('create', '--name', 'copy')
  const refused = await projects('push', 'again/copy')
  expect(refused.exitCode).toBe(1)
  expect(refused.stderr).toContain('berth projects push --project copy')
  const made = told(await projects('push', 'again/copy', '--name', 'mine', '--private'))
  expect((await projects('get', made.id)).stdout).toMatch(/Visibility +private/)
  await projects('delete', made.id)
  const outcome = await projects('push', 'again/copy', '--name', 'mine')
  expect(outcome.stderr).toContain('is gone: making another')
  expect(told(outcome).url).not.toBe('')
})

test('an app that breaks says why and how to go on; the old one responds; the next push fixes it', async () => {
  write('fragile', { 'index.ts': app('one') })
  const { url } = told(await projects('push', 'fragile'))
  write('fragile', { 'index.ts': 'throw new Error("broken on purpose")' })
  const broken = await projects('push', 'fragile')
  expect(broken.exitCode).toBe(1)
  expect(broken.stderr).toContain('broken on purpose')
  expect(broken.stderr).toMatch(
    /fragile could not be brought up; .*The version before goes on, with its files\. .*berth projects logs fragile\n$/,
  )
  expect(await text(url)).toBe('one')
  expect((await projects('list')).stdout).toMatch(/ fragile +fragile +running, update failed /)
  write('fragile', { 'index.ts': app('mended') })
  expect((await projects('push', 'fragile')).exitCode).toBe(0)
  expect(await text(url)).toBe('mended')
})

test('an app whose process is killed is listed as crashed, with its exit code and what follows', async () => {
  const index = `require('fs').writeFileSync('pid', String(process.pid)); ${app('up')}`
  write('killed', { 'index.ts': index, Procfile: 'web: [ -e broken ] && exit 6; exec bun index.ts' })
  await projects('push', 'killed')
  await berth.run(['exec', server, 'touch projects/killed/broken; kill -9 $(cat projects/killed/pid)'])
  const crashed = async () => (await projects('get', 'killed')).stdout
  await until(async () => (await crashed()).includes('exit code 6'), 'the restart that fails')
  const shown = await crashed()
  expect(shown).toMatch(/^Status +crashed$/m)
  expect(shown).toMatch(/^Crashed +(now|\d+s ago): it ended with exit code 6\.$/m)
  expect(shown).toMatch(/^Starts again +(now|in \d+ s), attempt \d$/m)
  expect(shown).toMatch(/^Next +berth projects logs killed says why; /m)
  expect((await projects('list')).stdout).toMatch(/ killed +killed +crashed /)
})

test('a project whose port another program has is listed so, and "open" does not lead there', async () => {
  write('taken', { 'index.html': 'mine' })
  await projects('push', 'taken')
  const { url } = (await json('get', 'taken')) as { url: string }
  await projects('update', 'taken', '--private')
  const port = Number(new URL(url).port)
  const other = Bun.serve({ hostname: '127.0.0.1', port, fetch: () => new Response('foreign') })
  try {
    await projects('update', 'taken', '--public')
    expect((await projects('list')).stdout).toMatch(/ taken +taken +running, port taken /)
    expect((await projects('get', 'taken')).stdout).toMatch(/^Port +taken by another program: /m)
    expect(await projects('open', 'taken')).toMatchObject({
      exitCode: 1,
      stderr: expect.stringContaining('leads to another program'),
    })
  } finally {
    await other.stop(true)
  }
})

test('a new project that does not come up is reported with what to run once it is fixed', async () => {
  write('never', { 'index.ts': 'process.exit(3)' })
  const { exitCode, stderr } = await projects('push', 'never')
  expect(exitCode).toBe(1)
  expect(stderr).toEndWith('then run: berth projects push never\nThe whole log: berth projects logs never\n')
  write('never', { 'index.ts': app('up') })
  expect((await projects('push', 'never')).stdout).toMatch(/^1 file sent, restarted/)
})

test('--watch sends each change, goes on after a mistake, and ends with Ctrl-C', async () => {
  write('watched', { 'index.ts': app('one'), '.gitignore': 'left\n' })
  const { url } = told(await projects('push', 'watched'))
  const watch = watching(['watched'])
  await watch.says('Watching')
  write('watched', { 'index.ts': app('two') })
  await watch.says(/^\d\d:\d\d:\d\d {2}index\.ts sent, restarted in [\d.]+ m?s/m)
  expect(await text(url)).toBe('two')
  watch.forget()
  write('watched', { 'index.ts': 'throw new Error("broken on purpose")', left: 'out' })
  await watch.says('could not be brought up')
  watch.forget()
  // A failure is reported once, though a change that is left out leads to another look.
  write('watched', { left: 'out again' })
  write('watched', { 'index.ts': app('two') })
  await watch.says(`Back at the version that runs: watched at ${url}`)
  expect(watch.said()).not.toContain('could not be brought up')
  write('watched', { 'index.ts': app('three') })
  await watch.says(/index\.ts sent, restarted/)
  expect(await text(url)).toBe('three')
  expect(await watch.end()).toBe(130)
})

test('--watch goes on though a new project does not come up', async () => {
  write('later', { 'index.ts': 'throw new Error("broken on purpose")' })
  const watch = watching(['later'])
  await watch.says('Watching')
  expect(watch.said().split('could not be brought up').length).toBe(2)
  write('later', { 'index.ts': app('up') })
  await watch.says(/index\.ts sent, restarted in /)
  expect(await watch.end()).toBe(130)
})

test('--watch sends what changed while the instance was down, and ends once its project is gone', async () => {
  await using first = await serve()
  await first.server()
  const index = join(first.cwd, 'site/index.html')
  writeWhole(index, 'one')
  const child = start(['projects', 'push', 'site', '--watch'], { cwd: first.cwd, env: bareEnvironment() })
  let said = ''
  const read = async (stream: ReadableStream<Uint8Array>) => {
    for await (const chunk of stream) said += new TextDecoder().decode(chunk)
  }
  const reading = Promise.all([read(child.stdout), read(child.stderr)])
  await until(() => said.includes('Watching'), 'the first push')
  const url = /is ready at (http:\S+)/.exec(said)?.[1] ?? ''
  first.child.kill('SIGTERM')
  await first.child.exited
  writeWhole(index, 'two')
  await until(() => said.includes('Waiting until it is back.\n'), 'the loss of the instance')
  await using second = await serve([], { cwd: first.cwd })
  await until(() => /index\.html sent, live in .* at http/.test(said), 'the change is sent')
  expect(await text(url)).toBe('two')
  expect(said.split('Waiting until it is back.').length).toBe(2)
  expect(said.split('The instance is back.').length).toBe(2)
  await second.run(['projects', 'delete', 'site', '--yes'])
  expect(await child.exited).toBe(1)
  await reading
  expect(said).toMatch(
    /berth: The project prj_\w+ is gone: it was deleted, or the instance was reset\. .*\n$/,
  )
})

test('Ctrl-C ends a push and says what goes on', async () => {
  write('slow', { 'index.ts': app('up') })
  await projects('push', 'slow')
  write('slow', { 'index.ts': 'setInterval(() => {}, 1000); console.log("waits")' })
  const child = start(['projects', 'push', 'slow'], { cwd: berth.cwd, env: bareEnvironment() })
  let said = ''
  const reading = (async () => {
    for await (const chunk of child.stderr) said += new TextDecoder().decode(chunk)
  })()
  await until(() => said.includes('waits'), 'the start of the new version')
  child.kill('SIGINT')
  await reading
  expect(await child.exited).toBe(130)
  expect(said).toEndWith(
    '\nberth: the bring-up of slow goes on. If it fails, the version before goes on, with its files. Look at it with: berth projects logs slow -f\n',
  )
  await projects('delete', 'slow', '--yes')
})

test('Ctrl-C at a push after the first says that files are missing only if some differ', async () => {
  write('still', { 'index.html': 'one' })
  const { id } = told(await projects('push', 'still'))
  const { base_url: baseUrl, api_key: credential } = berth.info
  const session = { context: { stderr: { isTerminal: false } } } as unknown as CliSession
  const pusher = new Pusher(session, at('still'), id, { isQuiet: true })
  const client = new Client({ baseUrl, credential, source: 'flag' })
  await pusher.push(client, new AbortController().signal)
  const stageAtCtrlC = async () => {
    await pusher.push(client, AbortSignal.abort(new Error('Ctrl-C'))).catch(() => {})
    return pusher.directory.stage
  }
  expect(await stageAtCtrlC()).toBe('done')
  write('still', { 'index.html': 'two' })
  expect(await stageAtCtrlC()).toBe('incomplete')
})

test('restart starts the app again', async () => {
  write('stamp', {
    'index.ts': `const at = crypto.randomUUID(); ${app('').replace("''", 'at')}`,
  })
  const { url, addresses } = told(await projects('push', 'stamp'))
  const before = await text(url)
  const { exitCode, stdout } = await projects('restart', 'stamp')
  expect([exitCode, stdout]).toEqual([0, `stamp is ready at ${addresses}\n`])
  expect(await text(url)).not.toBe(before)
  expect((await projects('restart', 'stamp', '--detach')).stdout).toContain('berth projects logs stamp -f')
})

test('what a directory was sent to is kept beside the logins, for its owner alone', async () => {
  const { HOME } = bareEnvironment()
  const kept = JSON.parse(readFileSync(join(HOME ?? '', '.config/berth/projects.json'), 'utf8'))
  expect(kept[at('shop')]).toEqual({ [berth.info.base_url]: expect.stringMatching(/^prj_/) })
  writeFileSync(join(HOME ?? '', '.config/berth/projects.json'), '[]')
  expect((await projects('push', 'shop')).stderr).toContain('projects.json is damaged')
  rmSync(join(HOME ?? '', '.config/berth/projects.json'))
})

test('a directory and a choice stay what they are when the instance has another address', async () => {
  await using first = await serve()
  const [one] = [await first.server(), await first.server()]
  await first.run(['use', one])
  writeFileSync(join(first.cwd, 'index.html'), 'one')
  const created = await first.run(['projects', 'push', '--name', 'moved'])
  expect(created.exitCode).toBe(0)
  first.child.kill('SIGTERM')
  await first.child.exited
  await using second = await serve([], { cwd: first.cwd })
  expect(second.info.base_url).not.toBe(first.info.base_url)
  writeFileSync(join(first.cwd, 'index.html'), 'two')
  const pushed = await second.run(['projects', 'push'])
  expect([pushed.exitCode, pushed.stdout]).toEqual([
    0,
    expect.stringMatching(/^1 file sent, live in .*: moved at /),
  ])
  expect((await second.run(['servers', 'get'])).stdout).toContain(one)
  expect((await second.run(['use', '--none'])).stdout).toBe(`${one} is not meant here any more.\n`)
  expect((await second.run(['use'])).stderr).toContain('No server is chosen here.')
})

test('an app that watches its files is asked how it took a change, and never reported live unasked', async () => {
  const start = 'bun --watch index.ts'
  write('self', { 'index.ts': app('one'), 'berth.json': JSON.stringify({ start }) })
  const { url, addresses } = told(await projects('push', 'self'))
  write('self', { 'index.ts': app('two') })
  const good = await projects('push', 'self')
  expect([good.exitCode, good.stdout]).toEqual([
    0,
    `1 file sent: self at ${addresses}. The app takes changes itself (${start}), and answers 200 since.\n`,
  ])
  await until(async () => (await text(url)) === 'two', 'the app has taken the change')
  write('self', { 'index.ts': 'throw new Error("broken on purpose")' })
  const bad = await projects('push', 'self')
  expect([bad.exitCode, bad.stdout]).toEqual([1, ''])
  expect(bad.stderr).toContain('broken on purpose')
  expect(bad.stderr).toMatch(
    /berth: 1 file sent\. The app takes changes itself .*, and (?:answers 50\d|does not answer) since\. The whole log: berth projects logs self\n$/,
  )
  write('self', { 'index.ts': app('three') })
  expect((await projects('push', 'self')).exitCode).toBe(0)
})

test('a directory that is too large for a request comes in parts, and so does a change', async () => {
  const random = (bytes: number) => {
    const content = new Uint8Array(bytes)
    for (let at = 0; at < bytes; at += 65_536) crypto.getRandomValues(content.subarray(at, at + 65_536))
    return content
  }
  write('heavy', { 'index.html': 'heavy' })
  const sum = (content: Uint8Array) => new Bun.CryptoHasher('sha256').update(content).digest('hex')
  const onServer = async () =>
    (await berth.run(['exec', server, 'cd projects/heavy && sha256sum *.bin'])).stdout.trim().split(/\s+/)
  const [one, two] = [random(35_000_000), random(3_000_000)]
  writeFileSync(at('heavy/one.bin'), one)
  writeFileSync(at('heavy/two.bin'), two)
  const first = await projects('push', 'heavy')
  expect(first).toMatchObject({ exitCode: 0 })
  expect(first.stdout).toMatch(/^Created .*\nheavy is ready at http:\S+ and http:\S+\n$/)
  expect(await onServer()).toEqual([sum(one), 'one.bin', sum(two), 'two.bin'])
  one[34_000_000] = (one[34_000_000] ?? 0) + 1
  writeFileSync(at('heavy/one.bin'), one)
  expect((await projects('push', 'heavy')).stdout).toMatch(/^1 file sent, live in/)
  expect(await onServer()).toEqual([sum(one), 'one.bin', sum(two), 'two.bin'])
})
