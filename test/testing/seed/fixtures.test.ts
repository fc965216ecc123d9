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

const step = (text: string) => `scenarios:\n  - match: a\n    steps:\n      ${text}\n`

test.each([
  ['an unknown key', 'a.yaml', step('- runn: x'), 4, 9, '"scenarios[0].steps[0].runn" is not a known field'],
  ['one at the top', 'b.yaml', 'scenario: []\n', 1, 1, '"scenario" is not a known field; known are $schema'],
  [
    'one of JSON',
    'c.json',
    '{"scenarios": [\n  {"match": "a", "step": []}\n]}',
    2,
    18,
    '"scenarios[0].step"',
  ],
  ['a value that holds itself', 'self.yaml', 'scenarios: &a [*a]\n', 1, 16, 'got one that contains itself'],
  ['a wrong type', 'd.yaml', 'scenarios:\n  - match: 5\n', 2, 12, '"scenarios[0].match": expected a string'],
  [
    'a bad expression',
    'e.yaml',
    'scenarios:\n  - match: { regex: "(" }\n    steps: [{ hold: true }]\n',
    2,
    21,
    'missing closing )',
  ],
  ['a bad duration', 'f.yaml', step('- wait: soon'), 4, 15, 'expected a duration such as'],
  [
    'no steps',
    'g.json',
    '{"scenarios": [{"match": "a",\n"steps": []}]}',
    2,
    10,
    'expected an array of 1 to 1000 entries',
  ],
  ['something missing', 'h.yaml', step('- run: { as: x }'), 4, 14, 'run.command" is missing'],
  [
    'nothing behind a key',
    'i.yaml',
    step('- run:'),
    4,
    13,
    'expected a string that is not blank or an object with command, got null',
  ],
  ['an unknown value', 'j.yaml', step('- say: "{{anser}}"'), 4, 14, '(known here: goal)'],
  [
    'a mistake behind an alias',
    'k.yaml',
    step('- ask: x\n      - &s { say: "{{answer}}" }\n  - match: b\n    steps: [*s]'),
    5,
    19,
    '"scenarios[1].steps[0].say": expected {{…}}',
  ],
  ['lines that end as on Windows', 'l.yaml', step('- runn: x').replaceAll('\n', '\r\n'), 4, 9, 'runn'],
  ['a key twice', 'm.json', '{"scenarios": [],\n "scenarios": []}', 2, 2, 'Map keys must be unique'],
  ['broken JSON', 'n.json', '{"scenarios": [\n  {"match" "a"}]}', 2, 12, 'not written as YAML or JSON is'],
  [
    'broken YAML',
    'o.yaml',
    'scenarios:\n  - match: a\n   steps: x\n',
    3,
    1,
    'not written as YAML or JSON is',
  ],
  ['a second document', 'p.yaml', 'scenarios: []\n---\nscenarios: []\n', 2, 1, 'a second document begins'],
  [
    'a tag of a language',
    'q.yaml',
    'scenarios: !!js/function x\n',
    1,
    12,
    'a tag stands there that is not known',
  ],
  [
    'an alias of nothing',
    'alias.yaml',
    'scenarios:\n  - *hunter2\n',
    2,
    5,
    'that begins with "*" needs quotes',
  ],
  ['no object', 'r.yaml', 'hello\n', 1, 1, 'expected an object with $schema, clock, accounts'],
  ['nothing', 's.yaml', '', 1, 1, 'webhooks, scenarios and faults, got null'],
])('%s stops the start with file, line, column and reason', (_, name, content, line, column, reason) => {
  const path = file(name, content)
  expect(() => readFixtures([path], {})).toThrow(StartupError)
  expect(() => readFixtures([path], {})).toThrow(
    `The fixtures file ${path}, line ${line}, column ${column}: `,
  )
  expect(() => readFixtures([path], {})).toThrow(reason)
})

const server = (text: string) => `servers:\n  api: ${text}\n`

test.each([
  ['a bad tier', server('{ tier: huge }'), 2, 16, '"servers.api.tier": expected one of small, medium, large'],
  ['a bad name', 'servers:\n  1st: {}\n', 2, 3, 'that begins with a letter'],
  ['a number as a variable', server('{ secrets: { PORT: 80 } }'), 2, 27, 'expected a text of at most'],
  ['a path that leaves', server('{ files: { ../x: y } }'), 2, 19, 'which this one leaves'],
  [
    'a file that is not there',
    server('{ files: { x: { from: none } } }'),
    2,
    30,
    `there is no ${folder}/none`,
  ],
  [
    'a file at the root',
    server(`{ files: { .: { from: . , base64: '' } } }`),
    2,
    22,
    'expected one of base64 and from, not both',
  ],
  ['a file twice', server('{ files: { x: a, ./x: b } }'), 2, 25, 'the file x stands there already'],
  ['an unset variable', server('{ secrets: { A: { env: UNSET } } }'), 2, 31, 'UNSET is not set'],
  ['an unknown account', server('{ account: nobody }'), 2, 19, 'there is no account "nobody"'],
  ['an unknown server', 'projects:\n  p: { server: api }\n', 2, 16, 'there is no servers at all'],
  [
    'code from two places',
    `${server('{}')}projects:\n  p: { server: api, template: static-site, files: {} }\n`,
    4,
    51,
    'its code comes from "template" already',
  ],
  [
    'waiting for no code',
    `${server('{}')}projects:\n  p: { server: api, until: ready }\n`,
    4,
    28,
    'a project without code is not brought up',
  ],
  [
    'a variable with two values',
    `${server('{ secrets: { A: x } }')}secrets:\n  - { server: api, values: { A: y } }\n`,
    4,
    33,
    'this variable has a value already',
  ],
  ['secrets of nothing', 'secrets:\n  - { values: { A: x } }\n', 2, 5, 'expected a server or a project'],
  [
    "another account's server",
    `accounts: { other: {} }\n${server('{ account: other }')}keys:\n  k: { servers: [api] }\n`,
    5,
    18,
    'the server is of the account "other" and the key of "default"',
  ],
  [
    'one key twice',
    'accounts: { a: { key: sk_live_12345678 } }\nkeys:\n  k: { key: sk_live_12345678 }\n',
    3,
    13,
    'another entry has the same key',
  ],
  [
    'a file in a file',
    server('{ files: { a/b/c: x, a: y } }'),
    2,
    19,
    'the file a/b/c cannot stand in a, which',
  ],
  ['an inbox that is none', 'webhooks: { w: { inbox: .. } }\n', 1, 25, 'begins with a letter or a digit'],
  ['a plan that is none', 'accounts: { a: { plan: { credits_per_task: 0.0001 } } }\n', 1, 44, '3 decimals'],
  ['a time that is none', 'clock: { set: 2030-02-30 }\n', 1, 15, 'expected an ISO 8601 time'],
])('%s stops the start where it stands', (_, content, line, column, reason) => {
  const path = file('whole.yaml', content)
  expect(() => readFixtures([path], {})).toThrow(`${path}, line ${line}, column ${column}: `)
  expect(() => readFixtures([path], {})).toThrow(reason)
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
  expect(() => readFixtures([none], {})).toThrow(
    new RegExp(`^The fixtures file ${none} cannot be read: ENOENT`),
  )
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
