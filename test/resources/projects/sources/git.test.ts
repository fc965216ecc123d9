import { describe, expect, test } from 'bun:test'
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  readlinkSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { processesOf, until } from '../../../support/processes.ts'
import { Repo, sentenceOf, World } from './world.ts'

const ROOT = process.geteuid?.() === 0
if (!ROOT) console.error('SKIP: a repository of another owner, since only root can give one away')

describe('a reference', () => {
  test('decides what is fetched: the default branch, a branch, a tag, a commit, a branch before a tag', async () => {
    await using world = new World()
    const repo = world.repo('mine')
    const first = repo.git('rev-parse', 'HEAD')
    repo.git('tag', 'v1')
    repo.git('tag', '-m', 'annotated', 'v1a')
    repo.git('tag', 'both')
    repo.write({ 'a.txt': 'two' })
    repo.commit('second')
    repo.git('branch', 'side')
    repo.git('branch', 'both')
    const url = repo.path
    for (const [ref, text] of [
      [undefined, 'two'],
      ['side', 'two'],
      ['v1', 'one'],
      ['v1a', 'one'],
      [first, 'one'],
      ['both', 'two'],
      ['refs/tags/both', 'one'],
      ['refs/heads/side', 'two'],
    ]) {
      await world.fetch({ type: 'git', url, ...(ref ? { ref } : {}) })
      expect([ref, world.text('a.txt')]).toEqual([ref, text])
    }
    const missing = await sentenceOf(world.fetch({ type: 'git', url, ref: 'none' }))
    expect(missing).toContain('no branch or tag "none"')
    expect(await sentenceOf(world.fetch({ type: 'git', url, ref: 'f'.repeat(40) }))).toContain(
      'no such commit',
    )
    expect(world.text('a.txt')).toBe('two')
  })

  test('of a repository without commits is reported as such', async () => {
    await using world = new World()
    const repo = new Repo(join(world.repos, 'empty'))
    repo.git('init', '-q')
    expect(await sentenceOf(world.fetch({ type: 'git', url: repo.path }))).toContain('no commits')
    world.expectNothing()
  })
})

test('the code stays a repository of one commit, on its branch, that knows where it came from', async () => {
  await using world = new World()
  const repo = world.repo('mine')
  repo.commit('second')
  await world.fetch({ type: 'git', url: `file://${repo.path}` })
  const code = new Repo(world.at('.'))
  expect(code.git('status', '-sb')).toBe('## trunk...origin/trunk')
  expect(code.git('rev-list', '--count', '--all')).toBe('1')
  repo.write({ 'a.txt': 'newer' })
  repo.commit('third')
  code.git('pull', '-q')
  expect(world.text('a.txt')).toBe('newer')
})

test('no hook, filter, file system monitor or setting of the machine or the repository runs anything', async () => {
  await using world = new World()
  const ran = join(world.folder, 'ran')
  const script = (name: string) => {
    writeFileSync(join(world.folder, name), `#!/bin/sh\ntouch ${ran}-${name}\ncat`, { mode: 0o755 })
    return join(world.folder, name)
  }
  const home = join(world.folder, 'home')
  mkdirSync(join(home, 'hooks'), { recursive: true })
  for (const hook of ['post-checkout', 'reference-transaction', 'post-index-change'])
    writeFileSync(join(home, 'hooks', hook), `#!/bin/sh\ntouch ${ran}-${hook}`, { mode: 0o755 })
  const config = `[core]\n hooksPath = ${home}/hooks\n fsmonitor = ${script('monitor')}\n[filter "lfs"]\n smudge = ${script('smudge')}\n required = true\n[filter "evil"]\n smudge = ${script('evil')}\n[init]\n templateDir = ${home}\n[uploadpack]\n packObjectsHook = ${script('pack')}\n`
  writeFileSync(join(home, '.gitconfig'), config)
  const repo = world.repo('mine', {
    '.gitattributes': '*.bin filter=lfs\n*.txt filter=evil',
    'a.txt': 'text',
    'b.bin': 'pointer',
  })
  // Settings of the repository itself, which git obeys on its own side.
  writeFileSync(join(repo.path, '.git/config'), config, { flag: 'a' })
  mkdirSync(join(repo.path, '.git/hooks'), { recursive: true })
  writeFileSync(join(repo.path, '.git/hooks/post-checkout'), `#!/bin/sh\ntouch ${ran}-own`, { mode: 0o755 })
  const environment = {
    PATH: process.env.PATH,
    HOME: home,
    XDG_CONFIG_HOME: home,
    GIT_CONFIG_GLOBAL: join(home, '.gitconfig'),
    GIT_CONFIG_PARAMETERS: `'core.hooksPath=${home}/hooks'`,
    GIT_SSH_COMMAND: script('ssh'),
    GIT_EXTERNAL_DIFF: script('diff'),
    GIT_TEMPLATE_DIR: home,
  }
  await using other = new World({ sourceFolders: [world.repos], environment })
  await other.fetch({ type: 'git', url: repo.path })
  expect(other.text('a.txt')).toBe('text')
  expect(other.text('b.bin')).toBe('pointer')
  expect(other.lines.some((line) => line.includes('Git LFS'))).toBe(true)
  expect(existsSync(other.at('.git/hooks'))).toBe(false)
  const traces = await Array.fromAsync(new Bun.Glob('ran-*').scan(world.folder))
  expect(traces).toEqual([])
})

test('of attributes only the beginning is looked at, and a directory of their name is fetched as any other', async () => {
  await using world = new World()
  const long = world.repo('long', { '.gitattributes': `${'#\n'.repeat(2 ** 20)}*.bin filter=lfs` })
  await world.fetch({ type: 'git', url: long.path })
  expect(world.lines.filter((line) => line.includes('Git LFS'))).toEqual([])
  const directory = world.repo('directory', { '.gitattributes/file': 'text' })
  await world.fetch({ type: 'git', url: directory.path })
  expect(world.text('.gitattributes/file')).toBe('text')
})

test('submodules are named and not fetched', async () => {
  await using world = new World()
  const inner = world.repo('inner')
  const repo = world.repo('outer')
  repo.git('-c', 'protocol.file.allow=always', 'submodule', 'add', '-q', inner.path, 'sub')
  repo.commit('with a submodule')
  await world.fetch({ type: 'git', url: repo.path })
  expect(world.tree()).toEqual(['.gitmodules', 'a.txt', 'sub'])
  expect(world.lines).toContain('Submodules are not fetched: "sub".')
})

describe('links', () => {
  test('inside the code are kept, also in circles and to nowhere', async () => {
    await using world = new World()
    const repo = world.repo('mine', { 'dir/a': 'a' })
    for (const [path, target] of [
      ['to-file', 'dir/a'],
      ['dir/up', '../to-file'],
      ['dir/deep', '../dir/../dir/none'],
      ['circle', 'circle'],
    ] as const)
      symlinkSync(target, join(repo.path, path))
    repo.commit('links')
    await world.fetch({ type: 'git', url: repo.path })
    expect(readlinkSync(world.at('to-file'))).toBe('dir/a')
    expect(world.text('dir/up')).toBe('a')
  })

  test.each([
    ['absolute', { out: '/etc/passwd' }, 'out'],
    ['upwards', { 'dir/out': '../../x' }, 'dir/out'],
    ['to the folder above', { out: '..' }, 'out'],
    ['by way of another link', { here: 'dir', 'dir/up': '..', out: 'here/up/../x' }, 'out'],
    ['by way of a link to a folder', { 'dir/deep/back': '../..', out: 'dir/deep/back/../..' }, 'out'],
  ])(
    '%s are refused by name, and the old code stays',
    async (_name, links: Record<string, string>, named) => {
      await using world = new World()
      const repo = world.repo('mine')
      await world.fetch({ type: 'git', url: repo.path })
      repo.write({ 'a.txt': 'two', 'dir/deep/f': '' })
      for (const [path, target] of Object.entries(links)) symlinkSync(target, join(repo.path, path))
      repo.commit('links')
      expect(await sentenceOf(world.fetch({ type: 'git', url: repo.path }))).toContain(
        `"${named}" is a symbolic link`,
      )
      expect(world.text('a.txt')).toBe('one')
    },
  )
})

test('a tree with paths that git itself would not write is refused, and nothing of it is placed', async () => {
  await using world = new World()
  const repo = world.repo('mine')
  const blob = repo.blob('#!/bin/sh\ntouch /tmp/pwned')
  const tree = (lines: string[]) => {
    const { stdout } = Bun.spawnSync(['git', '-C', repo.path, 'mktree'], {
      stdin: Buffer.from(`${lines.join('\n')}\n`),
    })
    return stdout.toString().trim()
  }
  const hooks = tree([`100755 blob ${blob}\tpost-checkout`])
  for (const name of ['.git', '.GIT', 'git~1', '..']) {
    repo.commitTree([`040000 tree ${hooks}\t${name}`])
    await sentenceOf(world.fetch({ type: 'git', url: repo.path }))
  }
  world.expectNothing()
})

test('modes come down to executable or not', async () => {
  await using world = new World()
  const repo = world.repo('mine', { run: '#!/bin/sh', plain: '' })
  chmodSync(join(repo.path, 'run'), 0o755)
  repo.commit('executable')
  await world.fetch({ type: 'git', url: repo.path })
  const mode = (path: string) => (lstatSync(world.at(path)).mode & 0o7777).toString(8)
  expect([mode('run'), mode('plain'), mode('.'), mode('.git')]).toEqual(['755', '644', '755', '755'])
})

describe('limits', () => {
  test('on the number of entries hold before anything is written', async () => {
    await using world = new World({ limits: { entries: 10 } })
    const repo = world.repo('many', Object.fromEntries([...Array(11).keys()].map((n) => [`f${n}`, ''])))
    expect(await sentenceOf(world.fetch({ type: 'git', url: repo.path }))).toContain(
      'more than 10 files and directories',
    )
    world.expectNothing()
  })

  test('a tree that repeats itself without end is given up early', async () => {
    await using world = new World()
    const repo = world.repo('bomb')
    let lines = [`100644 blob ${repo.blob('x')}\tf`]
    for (let level = 0; level < 12; level += 1) {
      const made = Bun.spawnSync(['git', '-C', repo.path, 'mktree'], {
        stdin: Buffer.from(`${lines.join('\n')}\n`),
      })
      const tree = made.stdout.toString().trim()
      lines = [...Array(10).keys()].map((n) => `040000 tree ${tree}\td${n}`)
    }
    repo.commitTree(lines)
    const started = performance.now()
    expect(await sentenceOf(world.fetch({ type: 'git', url: repo.path }))).toContain('more than 20000 files')
    expect(performance.now() - started).toBeLessThan(20_000)
    world.expectNothing()
  })

  test('on bytes hold for files that pack well, and for the room that is left', async () => {
    await using world = new World()
    const repo = world.repo('large', { zeros: '\0'.repeat(3 * 1024 * 1024) })
    const fetch = (room: number) => world.fetch({ type: 'git', url: repo.path }, { room })
    expect(await sentenceOf(fetch(2 * 1024 * 1024))).toContain('more than 2 MiB')
    world.expectNothing()
    await fetch(4 * 1024 * 1024)
  })

  test('on bytes hold while they are received', async () => {
    await using world = new World({ limits: { bytes: 1024 * 1024 } })
    const noise = Buffer.from(crypto.getRandomValues(new Uint8Array(65_536))).toString('hex')
    const repo = world.repo('noise')
    writeFileSync(
      join(repo.path, 'noise'),
      Buffer.concat([...Array(40)].map(() => crypto.getRandomValues(new Uint8Array(65_536)))),
    )
    repo.write({ noise2: noise })
    repo.commit('noise')
    expect(await sentenceOf(world.fetch({ type: 'git', url: repo.path }))).toContain('more than 1 MiB')
    world.expectNothing()
  })
})

describe('a folder of this machine', () => {
  test.skipIf(!ROOT)('that somebody else owns is fetched where it is allowed', async () => {
    await using world = new World()
    const repo = world.repo('theirs')
    await Bun.$`chown -R 65534:65534 ${repo.path}`
    await world.fetch({ type: 'git', url: repo.path })
    expect(world.text('a.txt')).toBe('one')
  })

  test('whose data lie outside the allowed ones is refused', async () => {
    await using world = new World()
    const main = new Repo(join(world.folder, 'private'))
    main.git('init', '-q', '-b', 'trunk')
    main.write({ secret: 's' })
    main.commit('first')
    main.git('worktree', 'add', '-q', '-b', 'side', join(world.repos, 'tree'))
    expect(await sentenceOf(world.fetch({ type: 'git', url: join(world.repos, 'tree') }))).toContain(
      'worktree',
    )
    mkdirSync(join(world.repos, 'linked'))
    symlinkSync(join(main.path, '.git'), join(world.repos, 'linked/.git'))
    await sentenceOf(world.fetch({ type: 'git', url: join(world.repos, 'linked') }))
    world.expectNothing()
  })

  test('inside a repository, or missing, is reported as such', async () => {
    await using world = new World()
    world.repo('mine', { 'sub/a': '' })
    mkdirSync(join(world.repos, 'plain'))
    for (const path of ['mine/sub', 'plain'])
      expect(await sentenceOf(world.fetch({ type: 'git', url: join(world.repos, path) }))).toContain(
        'no git repository',
      )
    world.expectNothing()
  })
})

test('without git on the machine the sentence says what to do', async () => {
  await using world = new World({ environment: { PATH: '/nowhere' } })
  const repo = world.repo('mine')
  expect(await sentenceOf(world.fetch({ type: 'git', url: repo.path }))).toContain('Install git')
  world.expectNothing()
})

/** A `git` that stands in the way of the real one: it waits without end in a child of its own, in the place of `fetch`. */
function stallingGit(world: World): string {
  const bin = join(world.folder, 'bin')
  mkdirSync(bin)
  const git = Bun.which('git')
  const script = `#!/bin/sh\ncase " $* " in *" fetch "*) echo $$ > ${world.folder}/stalled; (cd ${world.folder} && sleep 600) & wait;; esac\nexec ${git} "$@"`
  writeFileSync(join(bin, 'git'), script, { mode: 0o755 })
  return `${bin}:${process.env.PATH}`
}

test('cancelling ends the whole process tree, at once, and changes nothing', async () => {
  await using world = new World()
  await using slow = new World({ sourceFolders: [world.repos], environment: { PATH: stallingGit(world) } })
  const repo = world.repo('mine')
  const cancel = new AbortController()
  const fetching = slow.fetch({ type: 'git', url: repo.path }, { signal: cancel.signal })
  await until(() => existsSync(join(world.folder, 'stalled')), 'git to stall')
  const started = performance.now()
  cancel.abort(new Error('no longer wanted'))
  await expect(fetching).rejects.toThrow('no longer wanted')
  // A busy disk may take its time over the staging folder; a git that is waited for would take minutes.
  expect(performance.now() - started).toBeLessThan(20_000)
  expect(processesOf(world.folder)).toEqual([])
  slow.expectNothing()
})

test('what takes too long is ended, with a sentence', async () => {
  await using world = new World()
  const environment = { PATH: stallingGit(world) }
  await using slow = new World({ sourceFolders: [world.repos], environment, limits: { timeoutMs: 1_000 } })
  const repo = world.repo('mine')
  expect(await sentenceOf(slow.fetch({ type: 'git', url: repo.path }))).toContain('within 1 s')
  expect(processesOf(world.folder)).toEqual([])
  slow.expectNothing()
})

test('a berth that is killed leaves no git behind, no half of the code, and the next fetch does it whole', async () => {
  await using world = new World()
  const repo = world.repo('mine')
  const script = join(import.meta.dir, 'fetch-and-stall.ts')
  const env = { ...process.env, PATH: stallingGit(world) }
  await using child = Bun.spawn([process.execPath, script, world.folder, repo.path], {
    env,
    stderr: 'inherit',
  })
  await until(() => existsSync(join(world.folder, 'stalled')), 'git to stall', 20_000)
  child.kill('SIGKILL')
  await child.exited
  await until(() => processesOf(world.folder).length === 0, 'git to end')
  expect(world.tree()).toEqual([])
  expect(world.staged()).toHaveLength(1)
  await world.fetch({ type: 'git', url: repo.path })
  await world.fetch({ type: 'git', url: repo.path })
  expect(world.tree()).toEqual(['a.txt'])
  // What the killed one left is for the sweep of the next start.
  await Bun.$`rm -rf ${world.folder}/staging`
})

test('of what a server says, escapes and floods do not reach the log', async () => {
  await using world = new World()
  const bin = join(world.folder, 'bin')
  mkdirSync(bin)
  writeFileSync(
    join(bin, 'git'),
    `#!/bin/sh\ncase " $* " in *" ls-remote "*) printf '\\033[31mred\\033[0m\\a a\\rb\\n' >&2; i=0; while [ $i -lt 2000 ]; do echo $i >&2; i=$((i+1)); done;; esac\nexec ${Bun.which('git')} "$@"`,
    { mode: 0o755 },
  )
  await using noisy = new World({
    sourceFolders: [world.repos],
    environment: { PATH: `${bin}:${process.env.PATH}` },
  })
  await noisy.fetch({ type: 'git', url: world.repo('mine').path })
  expect(noisy.lines[0]).toBe('b')
  expect(noisy.lines.length).toBeLessThan(510)
  expect(readFileSync(noisy.at('a.txt'), 'utf8')).toBe('one')
})
