import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { loadConfig } from '../../src/config/load.ts'
import { configuredPlan } from '../../src/resources/accounts/configured-plan.ts'
import { readFixtures } from '../../src/testing/seed/read.ts'
import { type TestBerth, testBerth } from '../support/berth.ts'
import { CONFIGS, CONTROLS, FIXTURES, REQUESTS } from './mistakes.ts'

/*
 * What berth says about mistakes, word by word. `messages.json` holds the words: run these tests with
 * UPDATE_MESSAGES=1 to write it anew, and read the difference before it is committed. No message may get worse.
 */

const GOLDEN = join(import.meta.dir, 'messages.json')
const updating = process.env.UPDATE_MESSAGES === '1'
const golden: Record<string, Record<string, string>> = !updating && existsSync(GOLDEN)
  ? JSON.parse(readFileSync(GOLDEN, 'utf8'))
  : {}

let berth: TestBerth
let server: string
let key: string
let before: unknown
const directory = mkdtempSync(join(tmpdir(), 'berth-messages-'))

beforeAll(async () => {
  berth = await testBerth()
  server = await berth.server()
  key = (await berth.call('POST', '/keys', { label: 'kept' })).body.id
  await berth.call('PUT', '/secrets', { server_id: server, secrets: { KEPT: 'x' } })
  await berth.control('POST', '/scenarios', { match: 'kept', steps: [{ say: 'x' }] })
  await berth.control('POST', '/clock', { set: '2030-01-01T00:00:00Z', freeze: true })
  before = await state()
})
afterAll(async () => {
  if (updating) writeFileSync(GOLDEN, `${JSON.stringify(golden, null, 2)}\n`)
  rmSync(directory, { recursive: true, force: true })
  await berth[Symbol.asyncDispose]()
})

/** Lists of what requests make, change and remove. */
const LISTS = [
  ...['/servers', '/servers/SERVER/files', '/servers/SERVER/tasks', '/servers/SERVER/builds', '/projects'],
  ...['/keys', '/webhooks', '/_berth/accounts', '/_berth/clock', '/_berth/faults', '/_berth/scenarios'],
  ...['/_berth/servers/SERVER/fault', '/_berth/events', '/_berth/inbox', '/_berth/snapshots'],
]

/** Returns the responses of the lists and the names of the secrets. */
async function state(): Promise<unknown> {
  const { body: secrets } = await berth.call('PUT', '/secrets', { server_id: server, secrets: {} })
  const lists = LISTS.map(async (path) => {
    const send = path.startsWith('/_berth/') ? berth.control : berth.call
    const { status, body } = await send('GET', path.replace('SERVER', server).replace('/_berth', ''))
    // How far a stopped clock is ahead changes with the time that passes.
    const { offset_ms: _, ...listed } = body
    return { path, status, listed }
  })
  return { secrets, lists: await Promise.all(lists) }
}

/** Puts the ids of this run into a request or its body. */
const withIds = (text: string): string => text.replaceAll('SERVER', server).replaceAll('KEY', key)

/** Holds a message against the golden one, or keeps it. */
function hold(area: string, name: string, message: string): void {
  const said = message.replaceAll(server, 'SERVER').replaceAll(key, 'KEY').replaceAll(directory, 'DIRECTORY')
  if (updating) {
    golden[area] = { ...golden[area], [name]: said }
    return
  }
  expect(golden[area]?.[name], `no message is kept for ${name}`).toBeDefined()
  expect(said).toBe(golden[area]?.[name] as string)
}

const said = (work: () => unknown): string => {
  try {
    work()
  } catch (error) {
    return (error as Error).message
  }
  return 'ACCEPTED'
}

describe('the API', () => {
  for (const [request, body] of REQUESTS) {
    const name = body === undefined ? request : `${request} ${JSON.stringify(body)}`
    test(name, async () => {
      const [method = '', path = ''] = request.split(' ')
      const sent = body === undefined ? undefined : JSON.parse(withIds(JSON.stringify(body)))
      const answer = await berth.call(method, withIds(path), sent)
      hold('api', name, `${answer.status} ${answer.body.message ?? 'ACCEPTED'}`)
    })
  }
})

describe('the control API', () => {
  for (const [request, body] of CONTROLS) {
    const name = body === undefined ? request : `${request} ${JSON.stringify(body)}`
    test(name, async () => {
      const [method = '', path = ''] = request.split(' ')
      const answer = await berth.control(method, withIds(path), body)
      hold('control', name, `${answer.status} ${answer.body.message ?? 'ACCEPTED'}`)
    })
  }
})

test('no refused request changes anything', async () => {
  expect(await state()).toEqual(before)
})

describe('fixtures files', () => {
  for (const content of FIXTURES) {
    test(JSON.stringify(content), () => {
      const path = join(directory, 'fixtures.json')
      writeFileSync(path, typeof content === 'string' ? content : JSON.stringify(content, null, 2))
      hold(
        'fixtures',
        JSON.stringify(content),
        said(() => readFixtures([path], {})),
      )
    })
  }
})

describe('the configuration', () => {
  for (const [option, value] of CONFIGS) {
    const name = `${option} ${JSON.stringify(value)}`
    test(name, () => {
      hold(
        'config',
        name,
        said(() => {
          const { plan } = loadConfig({ flags: { [option]: value }, env: {}, cwd: directory })
          configuredPlan(plan)
        }),
      )
    })
  }
})

test('no message is kept of a mistake that is not tried any more', () => {
  const tried = {
    api: REQUESTS.length,
    control: CONTROLS.length,
    fixtures: FIXTURES.length,
    config: CONFIGS.length,
  }
  const kept = Object.entries(golden).map(([area, messages]) => [area, Object.keys(messages).length])
  expect(Object.fromEntries(kept)).toEqual(tried)
})
