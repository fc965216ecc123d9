import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { randomBytes } from 'node:crypto'
import {
  chmodSync,
  mkdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { packDirectory } from '../../src/cli/directory/pack.ts'
import { notesOn } from '../../src/cli/directory/report.ts'
import { type SurveyedFile, surveyDirectory } from '../../src/cli/directory/survey.ts'
import { temporaryFolder } from './command.ts'

let folder: ReturnType<typeof temporaryFolder>
let root: string
beforeEach(() => {
  folder = temporaryFolder()
  root = folder.path
})
afterEach(() => folder[Symbol.dispose]())

/** Writes files below the temporary folder. */
function write(files: Record<string, string | Uint8Array>): void {
  for (const [path, content] of Object.entries(files)) {
    mkdirSync(dirname(join(root, path)), { recursive: true })
    writeFileSync(join(root, path), content)
  }
}

const git = (cwd: string, ...args: string[]): string => {
  const { exitCode, stdout, stderr } = Bun.spawnSync(['git', ...args], { cwd })
  if (exitCode !== 0) throw new Error(stderr.toString())
  return stdout.toString()
}

const pathsOf = async (path: string) => (await surveyDirectory(path)).files.map((file) => file.path)

describe('what .gitignore files say', () => {
  test('that are pipes, links or far too large is not read', async () => {
    write({ 'a.txt': '', rules: '*.txt' })
    expect(Bun.spawnSync(['mkfifo', join(root, '.gitignore')]).exitCode).toBe(0)
    symlinkSync('rules', join(root, '.berthignore'))
    const survey = await surveyDirectory(root)
    expect(survey.files.map(({ path }) => path)).toEqual(['a.txt', 'rules'])
    expect(survey.leftOut.special).toEqual(['.gitignore'])
    mkdirSync(join(root, 'sub'))
    symlinkSync('/dev/zero', join(root, 'sub/.gitignore'))
    await expect(surveyDirectory(root)).rejects.toThrow('leads out of the directory')
    rmSync(join(root, 'sub/.gitignore'))
    writeFileSync(join(root, 'sub/.gitignore'), '')
    truncateSync(join(root, 'sub/.gitignore'), 2 ** 40)
    await expect(surveyDirectory(root)).rejects.toThrow('larger than the 1 MiB')
  })

  const TREE = {
    '.gitignore': 'dist/\n*.log\nout/\n/only-top.txt\n  spaced \n# a comment\n\\#hash\ndoc/**/secret.txt\n',
    'only-top.txt': '',
    'keep.txt': '',
    '#hash': '',
    'a.log': '',
    'dist/index.js': '',
    'doc/x/y/secret.txt': '',
    'doc/x/open.txt': '',
    'sub/.gitignore': '\ufeff!out/\n!keep.log\r\n/here.txt\nnested/only\n',
    'sub/keep.log': '',
    'sub/other.log': '',
    'sub/here.txt': '',
    'sub/deep/here.txt': '',
    'sub/deep/b.log': '',
    'sub/deep/only-top.txt': '',
    'sub/out/kept-again': '',
    'sub/nested/only': '',
    'sub/deep/nested/only': '',
    'we[i]rd !#dir/.gitignore': 'x*\n/y\n',
    'we[i]rd !#dir/x1': '',
    'we[i]rd !#dir/y': '',
    'we[i]rd !#dir/in/x2': '',
    'we[i]rd !#dir/in/y': '',
    'weird !#dir/x1': '',
  }

  test('stays behind exactly as git itself would leave it out, at every depth', async () => {
    git(root, 'init', '-q')
    write(TREE)
    const expected = git(root, 'ls-files', '-z', '--others', '--exclude-standard').split('\0').filter(Boolean)
    expect(await pathsOf(root)).toEqual(expect.arrayContaining(['keep.txt', 'sub/out/kept-again']))
    expect((await pathsOf(root)).sort()).toEqual(expected.sort())
  })

  test('holds for a folder inside the repository too, unless that folder itself is ignored', async () => {
    git(root, 'init', '-q')
    write(TREE)
    expect(await pathsOf(join(root, 'sub/deep'))).toEqual(['here.txt', 'nested/only', 'only-top.txt'])
    expect(await pathsOf(join(root, 'dist'))).toEqual(['index.js'])
  })

  test('is completed by .berthignore files, which have the last word', async () => {
    write({
      '.gitignore': 'dist/\n',
      '.berthignore': '!dist/\n*.psd\n/docs/\n',
      'dist/a.js': '',
      'docs/b.md': '',
      'sub/c.psd': '',
      'sub/d.txt': '',
    })
    const survey = await surveyDirectory(root)
    expect(survey.files.map(({ path }) => path)).toEqual([
      ...['.berthignore', '.gitignore', 'dist/a.js', 'sub/d.txt'],
    ])
    expect(notesOn(survey, '')).toBe('Left out: docs/, sub/c.psd (by .gitignore and .berthignore).\n')
  })

  test('does not hold from outside where there is no repository around', async () => {
    write({ '.gitignore': '*.txt', 'app/a.txt': '', 'app/.gitignore': '*.log', 'app/a.log': '' })
    expect(await pathsOf(join(root, 'app'))).toEqual(['.gitignore', 'a.txt'])
  })
})

test('credentials, installed packages, version control and data of berth stay behind, and it is said', async () => {
  write({
    '.env': 'A=1',
    '.env.production': 'A=1',
    '.envrc': 'export A=1',
    '.env.example': 'A=',
    'nested/.env.local': 'A=1',
    'nested/.env.local.sample': 'A=',
    '.git/config': '',
    '.berth/credentials.json': '{}',
    'node_modules/x/index.js': '',
    'nested/node_modules/y/index.js': '',
    'venv/pyvenv.cfg': '',
    'venv/lib/x.py': '',
    '.gitignore': '*.log',
    'a.log': '',
    'app.ts': '',
  })
  const survey = await surveyDirectory(root)
  expect(survey.files.map(({ path }) => path)).toEqual([
    '.env.example',
    '.gitignore',
    'app.ts',
    'nested/.env.local.sample',
  ])
  expect(survey.leftOut.secret).toEqual(['.env', '.env.production', '.envrc', 'nested/.env.local'])
  expect(notesOn(survey, '--env-file')).toBe(
    'Left out: .berth/, .git/, nested/node_modules/, node_modules/, venv/; a.log (by .gitignore); ' +
      '.env, .env.production, .envrc, nested/.env.local (may hold secrets; --env-file .env sends the variables in it).\n',
  )
})

test('a packed folder unpacks to the same bytes, permissions and links', async () => {
  const binary = new Uint8Array(70_000).map((_, at) => (at * 7919) % 256)
  const long = `${'a-long-name-'.repeat(12)}/${'and-more-'.repeat(20)}ö 漢字.txt`
  write({ 'app.bin': binary, [long]: 'text\n', 'run.sh': '#!/bin/sh\n', empty: '' })
  chmodSync(join(root, 'run.sh'), 0o700)
  symlinkSync('../app.bin', join(root, dirname(long), 'link'))
  using unpacked = temporaryFolder()
  const tar = Bun.spawnSync(['tar', '-xz', '-C', unpacked.path], {
    stdin: await packDirectory(await surveyDirectory(root)),
  })
  expect(tar.stderr.toString()).toBe('')
  expect(new Uint8Array(readFileSync(join(unpacked.path, 'app.bin')))).toEqual(binary)
  expect(readFileSync(join(unpacked.path, long), 'utf8')).toBe('text\n')
  expect(statSync(join(unpacked.path, 'empty')).size).toBe(0)
  expect(statSync(join(unpacked.path, 'run.sh')).mode & 0o777).toBe(0o755)
  expect(statSync(join(unpacked.path, 'app.bin')).mode & 0o777).toBe(0o644)
  expect(readlinkSync(join(unpacked.path, dirname(long), 'link'))).toBe('../app.bin')
})

test.each([
  ['an absolute path', '/etc/passwd'],
  ['a path out of the folder', '../outside'],
  ['a path that leaves and comes back', '../../../../../../../../../etc/passwd'],
])('a link to %s is refused by name', async (_, target) => {
  write({ 'app/index.html': '', outside: '' })
  symlinkSync(target, join(root, 'app/out'))
  await expect(surveyDirectory(join(root, 'app'))).rejects.toThrow(
    `out is a link that leads out of the directory (to ${target})`,
  )
})

test('a link over another link that leads out is refused; one that is ignored is not looked at', async () => {
  write({ 'app/index.html': '', 'outside/x': '', 'app/.gitignore': 'hop\n' })
  symlinkSync('../outside', join(root, 'app/hop'))
  expect(await pathsOf(join(root, 'app'))).toEqual(['.gitignore', 'index.html'])
  symlinkSync('hop/x', join(root, 'app/over'))
  await expect(surveyDirectory(join(root, 'app'))).rejects.toThrow('over is a link that leads out')
})

test('a folder that packs to more than fits is refused with its largest files, long before all is read', async () => {
  write({ 'small.txt': 'x', 'a large.bin': randomBytes(1_000_000) })
  for (let at = 0; at < 20; at += 1) write({ [`more/${at}.bin`]: randomBytes(50_000) })
  const survey = await surveyDirectory(root)
  const missing = {
    ...survey,
    files: [...survey.files, { ...(survey.files[0] as SurveyedFile), path: 'not read', size: 1 }],
  }
  await expect(packDirectory(missing, 200_000)).rejects.toThrow(
    /32 MiB.*a large\.bin \(1\.0 MB\), more\/0\.bin \(50\.0 KB\)/,
  )
  expect((await packDirectory(survey, 2_100_000)).length).toBeGreaterThan(2_000_000)
})

test('a file that goes away while it is packed is named', async () => {
  write({ 'a.txt': 'x', 'b.txt': 'x' })
  const survey = await surveyDirectory(root)
  const gone = { ...survey, files: survey.files.map((file) => ({ ...file, path: `${file.path}.gone` })) }
  await expect(packDirectory(gone)).rejects.toThrow('There is no file a.txt.gone.')
})

test('reports a path that is not a directory', async () => {
  write({ 'a.txt': 'x' })
  await expect(surveyDirectory(join(root, 'absent'))).rejects.toThrow('There is no directory')
  await expect(surveyDirectory(join(root, 'a.txt'))).rejects.toThrow('is not a directory')
})
