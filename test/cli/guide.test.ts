import { expect, test } from 'bun:test'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { GUIDE_PAGES } from '../../src/cli/help.ts'
import { wordForms } from '../../src/http/docs/guide/search.ts'
import { run } from './command.ts'

const DOCS = join(import.meta.dir, '../../docs')

test('a page is printed unchanged without a terminal, also as a topic of help', async () => {
  const source = await Bun.file(join(DOCS, 'storage.md')).text()
  for (const args of [
    ['guide', 'storage'],
    ['help', 'storage'],
  ])
    expect(await run(args)).toMatchObject({ exitCode: 0, stdout: source, stderr: '' })
})

test('without a topic the pages are listed by what a person wants to do', async () => {
  const { stdout } = await run(['guide'])
  expect(stdout).toContain('Test against berth\n')
  expect(stdout).toMatch(/^ {2}faults +make requests fail/m)
})

test('other words are searched for, and named if nothing has them', async () => {
  const { stdout } = await run(['guide', 'idempotency', 'key'])
  expect(stdout).toStartWith('The API: Idempotency-Key\n')
  expect(stdout).toContain('\n  berth guide api\n')
  const found = JSON.parse((await run(['guide', 'idempotency', 'key', '--json'])).stdout)
  expect(found[0]).toMatchObject({ name: 'api', heading: 'Idempotency-Key', fragment: 'idempotency-key' })
  expect(await run(['guide', 'zzyzx'])).toMatchObject({
    exitCode: 1,
    stdout: '',
    stderr:
      'berth: Nothing in the guide has "zzyzx". "berth guide" lists its pages. "berth help COMMAND" explains a command.\n',
  })
})

test('finds pages for a question: small words do not count, and the page with most of the others is first', async () => {
  const { stdout } = await run(['guide', 'how do I see why my app does not start?'])
  expect(stdout).toContain('berth guide ')
  const found = JSON.parse(
    (await run(['guide', 'where', 'is', 'the', 'idempotency', 'key', '--json'])).stdout,
  )
  expect(found[0]).toMatchObject({ name: 'api', heading: 'Idempotency-Key' })
})

test('a word finds its other forms, and no other word that begins as it does', () => {
  const found = wordForms('deleted')
  expect(found.countIn('Delete it, deletes, deleting. A deletion.')).toBe(4)
  expect(wordForms('stopping').isIn('it stopped')).toBe(true)
  expect(wordForms('undo').isIn('an undocumented field')).toBe(false)
  expect(wordForms('app').isIn('happen, apply, appear')).toBe(false)
  expect(wordForms('--outbound').isIn('`outbound`')).toBe(true)
})

test.each([
  ['reach another project from a server', 'network', 'reach-another-app'],
  ['search reach another server', 'network', 'reach-another-app'],
  ['undo', 'snapshots', 'undo'],
  ['restore deleted file', 'snapshots', 'undo'],
  ['deleted server by mistake', 'snapshots', 'undo'],
  ['restoring a deleted project', 'snapshots', 'undo'],
  ['idempot', 'api', 'idempotency-key'],
  ['security', 'threats', ''],
  ['license', 'install', 'what-is-in-it-and-its-licenses'],
  ['docker', 'install', 'in-a-docker-container'],
  ['how do I fail a request', 'faults', 'fail-a-request'],
  ['uninstall', 'instances', 'update-uninstall'],
])('"%s" leads to %s#%s', async (question, name, fragment) => {
  const { stdout } = await run(['guide', ...question.split(' '), '--json'])
  expect(JSON.parse(stdout)[0]).toMatchObject({ name, fragment })
})

test('help on a command ends with a page of the guide, and each such page exists', async () => {
  const { stdout } = await run(['help', 'faults'])
  expect(stdout).toEndWith('\nMore in the guide: berth guide faults\n')
  const missing = Object.values(GUIDE_PAGES).filter((page) => !existsSync(join(DOCS, `${page}.md`)))
  expect(missing).toEqual([])
})
