import { afterAll, beforeAll, expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { run, type Served, serve, temporaryFolder } from './command.ts'

let folder: ReturnType<typeof temporaryFolder>
let berth: Served
beforeAll(async () => {
  folder = temporaryFolder()
  const file = 'keys: { ci: { key: sk_live_of_the_ci } }\nservers: { api: {} }\n'
  writeFileSync(join(folder.path, 'fixtures.yaml'), file)
  berth = await serve(['--fixtures', 'fixtures.yaml'], { cwd: folder.path })
})
afterAll(async () => {
  await berth[Symbol.asyncDispose]()
  folder[Symbol.dispose]()
})

test('what the files have made is listed with ids and keys', async () => {
  const { stdout } = await berth.run(['fixtures'])
  expect(stdout).toMatch(/^KIND +NAME +ID +KEY, URL\naccount +default +acct_\w+ +sk_live_\w+\n/)
  expect(stdout).toMatch(/\nserver +api +srv_\w+\nkey +ci +key_\w+ +sk_live_of_the_ci\n$/)
  const listed = JSON.parse((await berth.run(['fixtures', '--json'])).stdout)
  expect(listed.fixtures).toHaveLength(3)
})

test('a file is checked without an instance: its first mistake is reported with its place', async () => {
  const good = await run(['fixtures', 'check', 'fixtures.yaml'], { cwd: folder.path })
  expect(good).toMatchObject({ exitCode: 0, stdout: 'The file is good.\n', stderr: '' })
  writeFileSync(join(folder.path, 'more.yaml'), 'webhooks: {}\nserver: {}\n')
  const bad = await run(['fixtures', 'check', 'fixtures.yaml', 'more.yaml'], { cwd: folder.path })
  expect(bad).toMatchObject({ exitCode: 1, stdout: '' })
  expect(bad.stderr).toContain('more.yaml, line 2, column 1: "server" is not a known field')
})

test('the schema is printed as JSON', async () => {
  const { stdout } = await run(['fixtures', 'schema'], { cwd: folder.path })
  expect(JSON.parse(stdout)).toMatchObject({ $schema: 'http://json-schema.org/draft-07/schema#' })
})
