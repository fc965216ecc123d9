import { describe, expect, test } from 'bun:test'
import {
  appendFileSync,
  existsSync,
  mkdirSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { Repo, sentenceOf, World } from './world.ts'

const SECRET = 'topsecret-outside'

/** A repository beside the allowed folder, which nobody may take. */
function repoOutside(world: World): Repo {
  const repo = new Repo(join(world.folder, 'private'))
  repo.git('init', '-q', '-b', 'trunk')
  repo.write({ 'secret.txt': SECRET })
  repo.commit('private')
  writeFileSync(join(world.folder, 'secret.txt'), `${SECRET} and more\n`)
  return repo
}

/** Has a repository name a commit that it has not. */
function nameCommit(repo: Repo, commit: string): void {
  writeFileSync(join(repo.path, '.git/refs/heads/trunk'), `${commit}\n`)
}

/** Expects that a repository is refused, and that nothing of what lies outside is in the project or the log. */
async function expectRefused(world: World, repo: Repo, said: string): Promise<void> {
  expect(await sentenceOf(world.fetch({ type: 'git', url: repo.path }))).toContain(said)
  expect(world.lines.join('\n')).not.toContain(SECRET)
  world.expectNothing()
}

describe('of a repository outside of the allowed folders nothing is taken', () => {
  test('by borrowed objects, which lead there over several steps too', async () => {
    await using world = new World()
    const outside = repoOutside(world)
    const repo = world.repo('mine')
    const alternates = join(repo.path, '.git/objects/info/alternates')
    const between = world.repo('between')
    writeFileSync(alternates, `${outside.path}/.git/objects\n`)
    nameCommit(repo, outside.git('rev-parse', 'HEAD'))
    await expectRefused(world, repo, 'borrows objects from one that is not below the allowed directories')
    renameSync(alternates, join(between.path, '.git/objects/info/alternates'))
    writeFileSync(alternates, `# one step\n../../../between/.git/objects\n`)
    await expectRefused(world, repo, 'borrows objects')
    writeFileSync(alternates, `"${outside.path}/.git/obj\\145cts"\n`)
    await expectRefused(world, repo, 'borrows objects')
  })

  test.each(['objects', 'objects/pack', 'refs', 'refs/heads', 'info'])('by a link at %s', async (part) => {
    await using world = new World()
    const outside = repoOutside(world)
    const repo = world.repo('mine')
    nameCommit(repo, outside.git('rev-parse', 'HEAD'))
    rmSync(join(repo.path, '.git', part), { recursive: true })
    symlinkSync(join(outside.path, '.git', part), join(repo.path, '.git', part))
    await expectRefused(world, repo, 'is a link that leads out of the allowed directories')
  })

  test('by a link to one of its objects', async () => {
    await using world = new World()
    const outside = repoOutside(world)
    const repo = world.repo('mine')
    const commit = outside.git('rev-parse', 'HEAD')
    const name = join('.git/objects', commit.slice(0, 2), commit.slice(2))
    mkdirSync(join(repo.path, '.git/objects', commit.slice(0, 2)), { recursive: true })
    symlinkSync(join(outside.path, name), join(repo.path, name))
    nameCommit(repo, commit)
    await expectRefused(world, repo, 'leads out of the allowed directories')
  })

  test.each(['HEAD', 'config', 'packed-refs', 'shallow', 'objects/info/alternates'])(
    'by a line of a file that git repeats: %s',
    async (part) => {
      await using world = new World()
      repoOutside(world)
      const repo = world.repo('mine')
      rmSync(join(repo.path, '.git', part), { force: true })
      symlinkSync(join(world.folder, 'secret.txt'), join(repo.path, '.git', part))
      await expectRefused(world, repo, 'is a link that leads out of the allowed directories')
    },
  )

  test.each([
    ['[include]\n\tpath = FILE\n'],
    ['[includeIf "gitdir:/"]\n\tpath = FILE\n'],
    ['[core] [INCLUDE] path = FILE\n'],
    ['[core][include] path = FILE\n'],
  ])('by settings that include a file: %j', async (text) => {
    await using world = new World()
    repoOutside(world)
    const repo = world.repo('mine')
    appendFileSync(join(repo.path, '.git/config'), text.replaceAll('FILE', join(world.folder, 'secret.txt')))
    await expectRefused(world, repo, 'config includes settings of other files')
  })

  test('by a repository in or beside the one that is named', async () => {
    await using world = new World()
    const outside = repoOutside(world)
    // Git takes the first of PATH/.git and PATH that it understands, each with ".git" appended too.
    const inner = world.repo('inner')
    const borrowing = world.repo('borrowing')
    writeFileSync(join(borrowing.path, '.git/objects/info/alternates'), `${outside.path}/.git/objects\n`)
    nameCommit(borrowing, outside.git('rev-parse', 'HEAD'))
    renameSync(join(borrowing.path, '.git'), join(inner.path, '.git/.git'))
    await world.fetch({ type: 'git', url: inner.path })
    expect(world.text('a.txt')).toBe('one')
    expect(existsSync(world.at('secret.txt'))).toBe(false)
    const broken = world.repo('broken')
    renameSync(join(inner.path, '.git/.git'), join(world.repos, 'broken.git'))
    writeFileSync(join(broken.path, '.git/HEAD'), 'nothing\n')
    expect(await sentenceOf(world.fetch({ type: 'git', url: broken.path }))).toContain('no git repository')
  })
})

test('objects borrowed below the allowed folders are taken, and a bare repository', async () => {
  await using world = new World()
  const repo = world.repo('mine')
  repo.git('clone', '-q', '--shared', repo.path, join(world.repos, 'shared'))
  repo.git('clone', '-q', '--bare', repo.path, join(world.repos, 'bare.git'))
  for (const name of ['shared', 'bare.git']) {
    await world.fetch({ type: 'git', url: join(world.repos, name) })
    expect(world.text('a.txt')).toBe('one')
  }
})

test('a worktree of a repository below the allowed folders is taken, of one outside it is refused', async () => {
  await using world = new World()
  const repo = world.repo('mine')
  repo.git('worktree', 'add', '-q', '-b', 'side', join(world.repos, 'side'))
  await world.fetch({ type: 'git', url: join(world.repos, 'side') })
  expect(world.text('a.txt')).toBe('one')
  const outside = repoOutside(world)
  outside.git('worktree', 'add', '-q', '-b', 'side', join(world.repos, 'theirs'))
  const refused = await sentenceOf(world.fetch({ type: 'git', url: join(world.repos, 'theirs') }))
  expect(refused).toContain('worktree of a repository that is not below the allowed directories')
})

test('a repository among the files of a server is not taken, even below an allowed folder', async () => {
  await using world = new World()
  const theirs = new Repo(join(world.repos, `.berth/servers/srv_${'0'.repeat(26)}/workspace/app`))
  theirs.git('init', '-q', '-b', 'trunk')
  theirs.write({ 'secret.txt': SECRET })
  theirs.commit('theirs')
  expect(await sentenceOf(world.fetch({ type: 'git', url: theirs.path }))).toContain('not among those')
  const mine = world.repo('mine')
  symlinkSync(theirs.path, join(world.repos, 'link'))
  expect(await sentenceOf(world.fetch({ type: 'git', url: join(world.repos, 'link') }))).toContain(
    'not among',
  )
  writeFileSync(join(mine.path, '.git/objects/info/alternates'), `${theirs.path}/.git/objects\n`)
  nameCommit(mine, theirs.git('rev-parse', 'HEAD'))
  await expectRefused(world, mine, 'borrows objects from one that is not below the allowed directories')
})
