import { afterAll, beforeAll, expect, test } from 'bun:test'
import { existsSync, mkdirSync, readFileSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { testBerth } from '../support/berth.ts'
import { writeWhole } from '../support/files.ts'
import { run, temporaryFolder } from './command.ts'

let folder: ReturnType<typeof temporaryFolder>
beforeAll(() => {
  folder = temporaryFolder()
})
afterAll(() => folder[Symbol.dispose]())

/** Writes the files of an app, and returns its directory. */
function app(name: string, files: Record<string, string>): string {
  const directory = join(folder.path, name)
  mkdirSync(directory, { recursive: true })
  for (const [path, text] of Object.entries(files)) writeWhole(join(directory, path), text)
  return directory
}

const detect = (directory: string, ...args: string[]) => run(['detect', directory, ...args])
const json = async (directory: string, ...args: string[]) => {
  const { exitCode, stdout } = await detect(directory, '--json', ...args)
  return { exitCode, found: JSON.parse(stdout) }
}

const SITE = { 'web/index.html': 'the page', 'api/berth.json': '{"start": "bun a.ts"}', 'api/a.ts': '' }

test('shows what was found with its evidence, and runs none of it', async () => {
  const canary = join(folder.path, 'canary')
  const start = `touch ${canary}`
  const directory = app('plain', {
    'package.json': `{\n  "scripts": {\n    "start": ${JSON.stringify(start)},\n    "preinstall": ${JSON.stringify(start)}\n  }\n}\n`,
  })
  const { exitCode, stdout, stderr } = await detect(directory)
  expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' })
  expect(stdout).toMatch(/^Found +Node\.js \(bun\)\n/)
  expect(stdout).toContain('package.json:3  "start": ')
  expect(existsSync(canary)).toBe(false)
})

test('tells apps of one directory from each other by their starts', async () => {
  const main = 'package main\n\nimport "net/http"\n\nfunc main() { http.ListenAndServe(":8080", nil) }\n'
  const directory = app('servers', {
    'go.mod': 'module example.org/servers\n\ngo 1.20\n',
    ...Object.fromEntries(['blog', 'mail', 'news'].map((name) => [`cmd/${name}/main.go`, main])),
  })
  const { stdout } = await detect(directory)
  expect(stdout.match(/^Other app .*$/gm)).toEqual([
    'Other app  Go in .: ./bin/mail',
    'Other app  Go in .: ./bin/news',
  ])
})

test('prints all fields as JSON, without an instance and wherever it runs', async () => {
  const { exitCode, found } = await json(app('site', SITE), '--directory', 'api')
  expect(exitCode).toBe(0)
  expect(found).toMatchObject({
    ...{ directory: 'api', serves: null, install: null, build: null, start: 'bun a.ts', release: null },
    ...{ port: null, health: '/', left_out: [], problem: null },
    evidence: [{ file: 'api/berth.json', line: 1, says: '{"start": "bun a.ts"}' }],
    berth_json: { start: 'bun a.ts' },
  })
  for (const name of ['kind', 'tools', 'others', 'warnings']) expect(found).toHaveProperty(name)
})

test('looks into a directory of the name "projects" as into any other', async () => {
  const { found } = await json(app('monorepo', { 'projects/shop/package.json': '{"scripts":{"start":"x"}}' }))
  expect(found).toMatchObject({ directory: 'projects/shop', start: 'bun run start' })
})

test.each([
  ['../api', 'expected a directory relative to the code'],
  ['/etc', 'expected a directory relative to the code'],
  ['nowhere', 'There is no directory "nowhere" in the code.'],
  ['out', 'The directory "out" is a link that leads out of the code.'],
])('refuses the directory %j', async (within, reason) => {
  const directory = app('site', SITE)
  if (!existsSync(join(directory, 'out'))) symlinkSync('/etc', join(directory, 'out'))
  const { exitCode, stderr } = await detect(directory, '--directory', within)
  expect({ exitCode, stderr }).toEqual({ exitCode: 1, stderr: expect.stringContaining(reason) })
})

test('exits with 1 and names the reason if there is no app, a mistake or no directory', async () => {
  const none = await json(app('none', { 'notes.txt': '' }))
  expect(none).toMatchObject({ exitCode: 1, found: { kind: null, start: null } })
  expect(none.found.problem).toStartWith('Nothing here says how the app starts')
  const mistake = await detect(app('mistake', { 'berth.json': '{"start": 3}' }))
  expect(mistake).toMatchObject({ exitCode: 1, stdout: '' })
  expect(mistake.stderr).toContain('berth.json, line 1, column 11: "start": expected a shell command')
  expect((await detect(join(folder.path, 'absent'))).stderr).toContain('There is no directory')
})

test('--write writes a berth.json that says the same, and replaces one only if asked', async () => {
  const directory = app('written', {
    'web/index.html': '',
    'server/package.json': '{"scripts":{"start":"x"}}',
  })
  const file = join(directory, 'server/berth.json')
  const first = await detect(directory, '--write', '--directory', 'server')
  expect(first).toMatchObject({ exitCode: 0, stderr: `Wrote ${file}.\n` })
  expect(JSON.parse(readFileSync(file, 'utf8'))).toMatchObject({ start: 'bun run start' })
  writeWhole(file, '{"start": "mine"}')
  const second = await detect(directory, '--write', '--directory', 'server')
  expect({ exitCode: second.exitCode, text: readFileSync(file, 'utf8') }).toEqual({
    exitCode: 1,
    text: '{"start": "mine"}',
  })
  expect(second.stderr).toContain('--force replaces it')
  expect((await detect(directory, '--write', '--force', '--directory', 'server')).exitCode).toBe(0)
  expect((await detect(directory, '--force')).exitCode).toBe(2)
})

test('shows the app of an archive or a repository as a server would run it', async () => {
  await using berth = await testBerth({ flags: { 'source-folders': folder.path } })
  await berth.server()
  const on = { env: { BERTH_BASE_URL: berth.info.base_url, BERTH_API_KEY: berth.info.api_key } }
  const directory = app('packed', SITE)
  const archive = join(folder.path, 'packed.tar.gz')
  const git = (...args: string[]) =>
    expect(
      Bun.spawnSync(['git', '-C', directory, '-c', 'user.name=a', '-c', 'user.email=a', ...args]).success,
    ).toBe(true)
  git('init', '-q')
  git('add', '.')
  git('commit', '-qm', 'one')
  git('tag', 'v1')
  expect(Bun.spawnSync(['tar', '-czf', archive, '-C', directory, 'web', 'api']).success).toBe(true)
  const byArchive = await run(['detect', '--archive', archive, '--directory', 'api', '--json'], on)
  expect(byArchive.exitCode).toBe(0)
  expect(JSON.parse(byArchive.stdout)).toMatchObject({ directory: 'api', start: 'bun a.ts' })
  const byGit = await run(['detect', '--git', directory, '--ref', 'v1', '--directory', 'web'], on)
  expect(byGit).toMatchObject({
    exitCode: 0,
    stdout: expect.stringMatching(/^Found .*\n(?:.*\n)*Serves +web\n/),
  })
  expect((await run(['detect', directory, '--git', directory], on)).stderr).toContain(
    'Say where the code comes from once',
  )
  expect((await run(['detect', '--git', directory, '--write'], on)).stderr).toContain(
    '--write writes into a directory',
  )
})
