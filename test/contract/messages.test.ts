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
const directory = mkdtempSync(join(tmpdir(), 'berth-messages-'))

beforeAll(async () => {
  berth = await testBerth()
  server = await berth.server()
})
afterAll(async () => {
  if (updating) writeFileSync(GOLDEN, `${JSON.stringify(golden, null, 2)}\n`)
  rmSync(directory, { recursive: true, force: true })
  await berth[Symbol.asyncDispose]()
})

/** Holds a message against the golden one, or keeps it. */
function hold(area: string, name: string, message: string): void {
  const said = message.replaceAll(server, 'SERVER').replaceAll(directory, 'DIRECTORY')
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
      const sent = body === undefined ? undefined : JSON.parse(JSON.stringify(body).replace('SERVER', server))
      const answer = await berth.call(method, path.replace('SERVER', server), sent)
      hold('api', name, `${answer.status} ${answer.body.message ?? 'ACCEPTED'}`)
    })
  }
})

describe('the control API', () => {
  for (const [request, body] of CONTROLS) {
    const name = body === undefined ? request : `${request} ${JSON.stringify(body)}`
    test(name, async () => {
      const [method = '', path = ''] = request.split(' ')
      const answer = await berth.call(method, `/_berth${path.replace('SERVER', server)}`, body, {
        authorization: `Bearer ${berth.info.admin_token}`,
      })
      hold('control', name, `${answer.status} ${answer.body.message ?? 'ACCEPTED'}`)
    })
  }
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
