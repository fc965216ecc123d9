import { afterAll, beforeAll, beforeEach, expect, test } from 'bun:test'
import { existsSync, mkdirSync, mkdtempSync, realpathSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { notesOn } from '../../src/cli/directory/report.ts'
import { surveyDirectory } from '../../src/cli/directory/survey.ts'
import { writeWhole } from '../support/files.ts'
import { until } from '../support/processes.ts'
import { type Served, serve, start } from './command.ts'

let berth: Served
let server: string
let folder: string
let root: string
beforeAll(async () => {
  berth = await serve()
  server = await berth.server()
})
afterAll(async () => await berth[Symbol.asyncDispose]())
beforeEach(() => {
  if (folder !== undefined) rmSync(folder, { recursive: true, force: true })
  folder = realpathSync(mkdtempSync(join(tmpdir(), 'berth-tracked-')))
  root = join(folder, 'app')
  mkdirSync(root)
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

/** Runs git without the configuration of the person or the machine. */
function git(cwd: string, ...args: string[]): string {
  const env = {
    ...{ PATH: process.env.PATH ?? '', HOME: folder, GIT_CONFIG_NOSYSTEM: '1' },
    ...{ GIT_AUTHOR_NAME: 'a', GIT_AUTHOR_EMAIL: 'a@example.test' },
    ...{ GIT_COMMITTER_NAME: 'a', GIT_COMMITTER_EMAIL: 'a@example.test' },
  }
  const { exitCode, stdout, stderr } = Bun.spawnSync(['git', ...args], { cwd, env })
  if (exitCode !== 0) throw new Error(stderr.toString())
  return stdout.toString()
}

function write(files: Record<string, string>, at = root): void {
  for (const [path, content] of Object.entries(files)) writeWhole(join(at, path), content)
}

/** Makes a repository of files, all of which it tracks, whatever `.gitignore` files say. */
function commit(files: Record<string, string>, at = root): void {
  mkdirSync(at, { recursive: true })
  write(files, at)
  git(at, 'init', '-q')
  git(at, 'add', '-f', '.')
  git(at, 'commit', '-qm', 'all')
}

const sent = async (at = root): Promise<string[]> =>
  (await surveyDirectory(at)).files.map(({ path }) => path).sort()

const onServer = async (command: string): Promise<string> =>
  (await berth.run(['exec', server, command])).stdout

const COMMITTED = {
  '.gitignore': 'dist/\n*.local\n',
  '.env': 'GREETING=committed',
  'dist/app.js': 'tracked',
  'conf.local': 'tracked',
  'index.html': 'page',
}
const SENT = ['.env', '.gitignore', 'conf.local', 'dist/app.js', 'index.html']
/** Lists the files of a directory of the server. */
const listed = async (at: string): Promise<string[]> =>
  (await onServer(`cd ${at} && find . -type f -not -path './projects/*' | sed 's,^./,,' | LC_ALL=C sort`))
    .trim()
    .split('\n')

test('create, push, deploy and sync send what git tracks, also if it is ignored, and no untracked secret', async () => {
  commit(COMMITTED)
  write({ 'dist/new.js': 'ignored', '.env.local': 'KEY=1', 'b.local': 'ignored', 'new.html': 'untracked' })
  const expected = [...SENT, 'new.html']
  const named =
    'Sent although it may hold secrets: .env (git tracks it; a .berthignore file can leave it out).'
  const created = await berth.run(['projects', 'create', root, '--name', 'kept', '--server', server])
  expect(created.stderr).toContain(
    'Left out: .git/; b.local, dist/new.js (by .gitignore); .env.local (may hold secrets; --env-file .env.local sends the variables in it).\n',
  )
  expect(created.stderr).toContain(named)
  expect(await listed('projects/kept')).toEqual(expected)
  write({ 'dist/app.js': 'changed' })
  const pushed = await berth.run(['projects', 'push', root])
  expect(pushed.stdout).toStartWith('1 file sent')
  expect(pushed.stderr).toContain(named)
  expect(await onServer('cat projects/kept/dist/app.js')).toBe('changed')
  expect((await berth.run(['deploy', root, '--server', server])).stderr).toContain(named)
  expect(await listed('.')).toEqual(expected)
  const synced = await berth.run(['sync', root, `${server}:copy`])
  expect(synced.stdout).toStartWith('6 files sent')
  expect(synced.stderr).toContain(named)
  expect(await listed('copy')).toEqual(expected)
}, 60_000)

test('up sends what git tracks too, and names a tracked secret', async () => {
  commit({ ...COMMITTED, 'berth.yaml': 'projects:\n  up-app: { directory: . }\n' })
  const env = { BERTH_BASE_URL: berth.info.base_url, BERTH_ADMIN_TOKEN: berth.info.admin_token }
  const child = start(['up', '--detach'], {
    cwd: root,
    env: { ...env, BERTH_API_KEY: berth.info.api_key },
  })
  const stderr = await child.stderr.text()
  expect({ code: await child.exited, stderr }).toMatchObject({ code: 0 })
  expect(stderr).toContain('Sent although it may hold secrets: .env')
  const { projects } = await berth.json('projects')
  const { server_id } = projects.find(({ name }: { name: string }) => name === 'up-app')
  const { stdout } = await berth.run(['exec', server_id, 'cat projects/up-app/dist/app.js'])
  expect(stdout).toBe('tracked')
}, 60_000)

test('sync --delete removes a tracked file that is gone here, and keeps what would be left out', async () => {
  commit({ '.gitignore': '*.log\n', 'kept.log': 'tracked', a: '' })
  await onServer('mkdir mirror; touch mirror/server.log mirror/kept.log mirror/.env mirror/old')
  rmSync(join(root, 'kept.log'))
  await berth.run(['sync', root, `${server}:mirror`, '--delete'])
  expect(await listed('mirror')).toEqual(['.env', '.gitignore', 'a', 'server.log'])
})

test('sync --watch sends changes of a tracked file in an ignored directory', async () => {
  commit(COMMITTED)
  const words = ['sync', '--data', join(berth.cwd, '.berth'), root, `${server}:watched`, '--watch']
  const child = start(words)
  await until(async () => (await onServer('cat watched/dist/app.js')) === 'tracked', 'the directory is sent')
  write({ 'dist/app.js': 'second' })
  await until(async () => (await onServer('cat watched/dist/app.js')) === 'second', 'the change is sent')
  child.kill('SIGINT')
  expect(await child.exited).toBe(130)
}, 60_000)

test('committed packages stay behind and are named', async () => {
  commit({
    'node_modules/x/index.js': '',
    'lib/node_modules/y/index.js': '',
    'venv/pyvenv.cfg': '',
    'venv/bin/python': '',
    'old/bin/activate_this.py': '',
    'old/lib/x.py': '',
    '.env/pyvenv.cfg': '',
    'main.py': '',
  })
  write({ 'node_modules/z/index.js': '' })
  const survey = await surveyDirectory(root)
  expect(survey.files.map(({ path }) => path)).toEqual(['main.py'])
  expect(notesOn(survey, null)).toBe(
    'Left out: .env/, lib/node_modules/, node_modules/, old/, venv/ (committed, but the server installs packages itself).\n',
  )
})

test('.berthignore files leave out tracked files and bring back ignored ones, but no untracked secret', async () => {
  commit({ ...COMMITTED, '.berthignore': '/.env\n*.local\n!out/\n!.env.local\n', 'sub/x.local': '' })
  write({ 'out/built.js': '', '.env.local': 'KEY=1', '.git/info/exclude': 'out/\n' })
  expect(await sent()).toEqual(['.berthignore', '.gitignore', 'dist/app.js', 'index.html', 'out/built.js'])
})

test('rules of info/exclude and of core.excludesFile count as in git', async () => {
  commit({ 'a.one': '', 'sub/b.two': '', 'c.txt': '' })
  write({ 'd.one': '', 'sub/e.two': '', 'sub/f.txt': '', '.git/info/exclude': '*.one\n' })
  writeFileSync(join(folder, 'personal'), '*.two\n')
  git(root, 'config', 'core.excludesFile', join(folder, 'personal'))
  expect(await sent()).toEqual(['a.one', 'c.txt', 'sub/b.two', 'sub/f.txt'])
  expect(await sent(join(root, 'sub'))).toEqual(['b.two', 'f.txt'])
})

test('a subdirectory, a linked work tree and an ignored directory that is named have their tracked files', async () => {
  commit({ '.gitignore': '*.log\nout/\n', 'sub/a.log': '', 'sub/deep/b.log': '', 'out/c.log': '' })
  write({ 'sub/new.log': '', 'out/new.js': '' })
  expect(await sent(join(root, 'sub'))).toEqual(['a.log', 'deep/b.log'])
  // Naming it means its files, ignored or not.
  expect(await sent(join(root, 'out'))).toEqual(['c.log', 'new.js'])
  git(root, 'worktree', 'add', '-q', join(folder, 'linked'))
  expect(await sent(join(folder, 'linked'))).toEqual([
    '.gitignore',
    'out/c.log',
    'sub/a.log',
    'sub/deep/b.log',
  ])
})

test('names with line feeds, quotes, glob characters and other letters are those of git; others are named', async () => {
  const names = [
    'line\nfeed.log',
    '"quoted".log',
    ':(glob)*.log',
    '[ab].log',
    'ä漢.log',
    '-d.log',
    ' blank .log',
  ]
  commit({ '.gitignore': '*.log\n', ...Object.fromEntries(names.map((name) => [name, ''])) })
  expect(await sent()).toEqual(['.gitignore', ...names].sort())
  Bun.spawnSync(['sh', '-c', `touch "$(printf 'bad\\377')"`], { cwd: root })
  const survey = await surveyDirectory(root)
  expect(survey.files.length).toBe(names.length + 1)
  expect(notesOn(survey, null)).toBe('Left out: bad\ufffd (the name is not UTF-8).\n')
})

test('what is in the index counts, and what is on the disk is sent', async () => {
  commit({ '.gitignore': '*.log\n', 'gone.log': '', 'Case.log': 'x', 'assumed.log': '', 'skipped.log': '' })
  rmSync(join(root, 'gone.log'))
  // A file whose name only changes its case is still the tracked one.
  renameSync(join(root, 'Case.log'), join(root, 'case.log'))
  write({ 'intended.log': '', 'other.log': '' })
  git(root, 'add', '-f', '-N', 'intended.log')
  git(root, 'update-index', '--assume-unchanged', 'assumed.log')
  git(root, 'update-index', '--skip-worktree', 'skipped.log')
  expect(await sent()).toEqual(['.gitignore', 'assumed.log', 'case.log', 'intended.log', 'skipped.log'])
})

test('the files of submodules and nested repositories are sent; what git has not fetched is named', async () => {
  commit({ '.gitignore': 'build/\n', 'build/x.js': '', 's.txt': '' }, join(folder, 'library'))
  commit({ 'a.txt': '', 'far/b.txt': '' })
  for (const path of ['lib', 'absent'])
    git(root, '-c', 'protocol.file.allow=always', 'submodule', 'add', '-q', '../library', path)
  const pointer = `version https://git-lfs.github.com/spec/v1\noid sha256:${'0'.repeat(64)}\nsize 12345\n`
  write({ 'logo.png': pointer })
  git(root, 'add', '.')
  git(root, 'commit', '-qm', 'more')
  git(root, 'submodule', 'deinit', '-q', '-f', 'absent')
  git(root, 'sparse-checkout', 'set', '--no-cone', '/*', '!/far/')
  commit({ '.gitignore': '*.log\n', 'n.log': '' }, join(root, 'nested'))
  write({ 'lib/build/y.js': '', 'lib/new.txt': '', 'nested/untracked.log': '' })
  const survey = await surveyDirectory(root)
  expect(survey.files.map(({ path }) => path).sort()).toEqual([
    ...['.gitmodules', 'a.txt', 'lib/.gitignore', 'lib/build/x.js', 'lib/new.txt', 'lib/s.txt'],
    ...['logo.png', 'nested/.gitignore', 'nested/n.log'],
  ])
  expect(notesOn(survey, null)).toBe(
    [
      'Left out: absent/ ("git submodule update --init" fetches it).',
      'Sent as pointers of Git LFS, without their content: logo.png ("git lfs pull" fetches it).',
      'Not here: 1 tracked file that the sparse checkout leaves out.\n',
    ].join('\n'),
  )
})

test('nothing that the configuration of a repository names is executed', async () => {
  commit(COMMITTED)
  const canary = join(folder, 'canary')
  const hook = join(root, 'hooks/post-index-change')
  write({ 'hooks/post-index-change': `#!/bin/sh\ntouch ${canary}\n` })
  Bun.spawnSync(['chmod', '+x', hook])
  git(root, 'config', 'core.hooksPath', dirname(hook))
  for (const name of ['core.fsmonitor', 'core.pager', 'pager.ls-files', 'filter.x.clean', 'core.sshCommand'])
    git(root, 'config', name, `touch ${canary};`)
  git(root, 'config', 'alias.ls-files', `!touch ${canary}`)
  write({ '.gitattributes': '* filter=x\n' })
  expect(await sent()).toEqual([
    '.env',
    '.gitattributes',
    ...SENT.slice(1, 4),
    'hooks/post-index-change',
    'index.html',
  ])
  expect(existsSync(canary)).toBe(false)
})

test('without git, the rules of .gitignore files decide alone; a repository that git refuses is named', async () => {
  commit(COMMITTED)
  const words = ['sync', '--data', join(berth.cwd, '.berth'), root, `${server}:without`, '--json']
  const outcome = await berth.run(words, { env: { PATH: folder } })
  expect(JSON.parse(outcome.stdout)).toEqual({ sent: ['.gitignore', 'index.html'], removed: [] })
  writeFileSync(join(root, '.git/index'), 'no index')
  const { files, problems } = await surveyDirectory(root)
  expect(files.map(({ path }) => path)).toEqual(['.gitignore', 'index.html'])
  expect(problems).toEqual([
    expect.stringMatching(/^git does not list the files of .*\(fatal: .*index.*\)\.$/),
  ])
})

test('variables of git that a hook sets do not lead to another repository', async () => {
  commit(COMMITTED)
  const words = ['sync', '--data', join(berth.cwd, '.berth'), root, `${server}:hooked`, '--json']
  const env = { GIT_DIR: join(folder, 'nowhere'), GIT_INDEX_FILE: join(folder, 'nowhere/index') }
  expect(JSON.parse((await berth.run(words, { env })).stdout).sent.toSorted()).toEqual(SENT)
})
