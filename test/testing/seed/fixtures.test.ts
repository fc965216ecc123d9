import { afterAll, expect, test } from 'bun:test'
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { StartupError } from '../../../src/errors.ts'
import { readFixtures } from '../../../src/testing/seed/read.ts'

const folder = mkdtempSync(join(tmpdir(), 'berth-fixtures-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

/** A file with this content. */
function file(name: string, content: string | Uint8Array): string {
  const path = join(folder, name)
  writeFileSync(path, content)
  return path
}

const titlesOf = (...paths: string[]) =>
  readFixtures(paths, {}).scenarios.map(({ scenario }) => scenario.title)

test('files are read in their order, JSON and YAML, with what they come from', () => {
  const one = file('one.yaml', 'scenarios:\n  - match: a\n    steps: [{ say: hi }]\n')
  const two = file(
    'two.json',
    '{\n\t"$schema": "x",\n\t"scenarios": [{ "name": "b", "match": "c", "steps": [{ "say": "hi" }] }]\n}',
  )
  const bare = file('bare.yaml', '# nothing yet\n{}\n')
  expect(titlesOf(two, bare, one)).toEqual(['b', 'a'])
  expect(readFixtures([one], {}).scenarios).toEqual([
    { file: one, text: { match: 'a', steps: [{ say: 'hi' }] }, scenario: expect.any(Object) },
  ])
})

test('the examples are good', () => {
  const examples = join(import.meta.dir, '../../../fixtures/scenarios')
  const paths = readdirSync(examples).map((name) => join(examples, name))
  expect(titlesOf(...paths.sort())).toEqual(['release notes', 'deploy', 'flaky tests', 'review'])
})

test('names and the clock are shared by all files', () => {
  const one = file('names.yaml', 'servers: { api: {} }\nclock: { freeze: true }\n')
  const two = file('same.yaml', 'servers:\n  api: {}\n')
  const three = file('clock.yaml', 'clock: { freeze: false }\n')
  const four = file('keys.yaml', 'keys: { k: { servers: [api] } }\n')
  expect(readFixtures([four, one], {}).keys[0]?.value.servers).toEqual(['api'])
  expect(() => readFixtures([one, two], {})).toThrow(
    `${two}, line 2, column 8: "servers.api": the file ${one} has a server of this name already`,
  )
  expect(() => readFixtures([one, three], {})).toThrow(`${three}, line 1, column 8: "clock": another file`)
})

test('values come from the environment where the file says so, and wrong ones are shown to nobody', () => {
  const given = 'keys: { k: { key: { env: CI_KEY } } }\nservers: { s: { secrets: { A: { env: WORD } } } }\n'
  const path = file('env.yaml', given)
  const { keys, servers } = readFixtures([path], { CI_KEY: 'sk_live_from_outside', WORD: 'x' })
  expect([keys[0]?.value.key, servers[0]?.value.secrets]).toEqual(['sk_live_from_outside', { A: 'x' }])
  const refusal = (content: string, env: Record<string, string>) => {
    try {
      readFixtures([file('secret.yaml', content)], env)
      return ''
    } catch (error) {
      return (error as Error).message
    }
  }
  for (const said of [
    refusal(given, { CI_KEY: 'hunter2', WORD: 'x' }),
    refusal('keys: { k: { key: hunter2 } }', {}),
  ]) {
    expect(said).toContain('expected sk_live_ followed by')
    expect(said).not.toContain('hunter2')
  }
  // Nor where it stands at the wrong depth, or lacks its quotes.
  for (const content of [
    'keys: { k: hunter2 }',
    'keys: [hunter2]',
    'servers: { s: { secrets: hunter2 } }',
    'servers: { s: { secrets: [{ A: hunter2 }] } }',
    'servers: [{ secrets: { A: hunter2 } }]',
    'servers: { s: { secrets: { A: *hunter2 } } }',
    'servers: { s: { secrets: { A: !hunter2 } } }',
    'secrets: { server: s, values: { A: hunter2 } }',
    'webhooks: { w: hunter2 }',
    '[{ keys: { k: { key: hunter2 } } }]',
  ]) {
    expect(refusal(content, {})).toContain('line 1, column ')
    expect(refusal(content, {})).not.toContain('hunter2')
  }
})

test('a file that cannot be read stops it with file and reason', () => {
  const none = join(folder, 'none.yaml')
  expect(() => readFixtures([none], {})).toThrow(new RegExp(`^The file ${none} cannot be read: ENOENT`))
  expect(() => readFixtures([folder], {})).toThrow(StartupError)
  const binary = file('binary.yaml', Uint8Array.of(0xff, 0xfe, 0))
  expect(() => readFixtures([binary], {})).toThrow('cannot be read: it is not UTF-8')
})

test('aliases that multiply each other are refused at once', () => {
  const levels = [
    'a: &a [1, 1]',
    ...'bcdefghijklmnopqr'.split('').map((name, index) => {
      const before = 'abcdefghijklmnopqr'[index]
      return `${name}: &${name} [*${before}, *${before}]`
    }),
  ]
  const path = file('bomb.yaml', `${levels.join('\n')}\nscenarios: [*r]\n`)
  expect(() => readFixtures([path], {})).toThrow('Excessive alias count')
})
