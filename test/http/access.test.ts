import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { describeApi } from '../../src/instance/describe.ts'
import { type Answer, type TestBerth, testBerth } from '../support/berth.ts'
import { EXAMPLES, PARAMETERS, type World } from './examples.ts'
import { newWorld, onWorld } from './world.ts'

/** Account-level operations (specification, "Authentication" 6): a scoped key gets 403. */
const isAccountLevel = (id: string): boolean =>
  id === 'servers.create' || id === 'usage.account' || /^(keys|programs|browsers|webhooks)\./.test(id)

const document = await describeApi()
const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, { operationId: id, requestBody, security }]) => ({
    id,
    method: method.toUpperCase(),
    path,
    parameters: [...path.matchAll(/\{(\w+)\}/g)].map((match) => match[1] ?? ''),
    // Bytes have no shape that could be wrong.
    hasBody: requestBody?.content['application/json'] !== undefined,
    isPublic: security?.length === 0,
  })),
)
type Operation = (typeof operations)[number]

let berth: TestBerth
/** A server that the key "elsewhere" is limited to. */
let elsewhereServer: string
let elsewhere: string
let otherAccount: string
/** What requests name that are refused, which is followed by a look that nothing has changed, and those that only read. */
let untouched: World & AsyncDisposable

beforeAll(async () => {
  berth = await testBerth()
  otherAccount = (await berth.control('POST', '/accounts')).body.api_key
  elsewhereServer = await berth.server()
  elsewhere = await keyFor([elsewhereServer])
  untouched = await newWorld(berth)
})
afterAll(async () => {
  await untouched?.[Symbol.asyncDispose]()
  await berth[Symbol.asyncDispose]()
})

async function keyFor(servers: string[]): Promise<string> {
  return (await berth.call('POST', '/keys', { label: 'test', allowed_server_ids: servers })).body.key
}

/** A body as the operation takes it, of another shape, or not even JSON. */
const SHAPES = ['valid', 'invalid', 'malformed'] as const
type Shape = (typeof SHAPES)[number]

/** Calls the operation by its example; `null` sends no credential. */
async function send(
  { id, method, path, hasBody }: Operation,
  key: string | null,
  fill: (parameter: string) => string,
  shape: Shape = 'valid',
): Promise<Pick<Answer, 'status' | 'body'>> {
  const { query, body, invalid, accept } = EXAMPLES[id] ?? {}
  const valid = typeof body === 'function' ? body(fill) : body
  const filled = path.replaceAll(/\{(\w+)\}/g, (_, name) => fill(name))
  const search = query ? `?${new URLSearchParams(query)}` : ''
  const response = await fetch(`${berth.info.base_url}${filled}${search}`, {
    method,
    headers: {
      ...(key === null ? {} : { authorization: `Bearer ${key}` }),
      ...(hasBody ? { 'content-type': 'application/json' } : {}),
      ...(accept ? { accept } : {}),
    },
    ...(hasBody
      ? { body: { valid: JSON.stringify(valid), invalid: JSON.stringify(invalid), malformed: '{' }[shape] }
      : {}),
  })
  const isJson = response.headers.get('content-type')?.startsWith('application/json')
  const text = await response.text()
  return { status: response.status, body: (isJson ? JSON.parse(text) : {}) as Record<string, unknown> }
}

const valueIn = (world: World) => (name: string) => PARAMETERS[name]?.value(world) ?? ''
const missing = (name: string) => PARAMETERS[name]?.missing ?? ''

/** What the account has, without what changes by itself. */
async function state(): Promise<unknown> {
  const [servers, keys, webhooks] = [
    (await berth.call('GET', '/servers')).body,
    (await berth.call('GET', '/keys')).body,
    (await berth.call('GET', '/webhooks')).body,
  ]
  return [
    servers.servers.map(({ creditsUsed: _, storageUsedGb: __, ...rest }: Record<string, unknown>) => rest),
    keys.keys.map(({ last_used_at: _, ...rest }: Record<string, unknown>) => rest),
    webhooks,
  ]
}

/** Each refusal, whatever the body is, and then that nothing has changed. */
async function refused(
  operation: Operation,
  world: World,
  key: string | null,
  status: number,
  error: string,
): Promise<void> {
  const before = await state()
  for (const shape of operation.hasBody ? SHAPES : (['valid'] as const)) {
    const answer = await send(operation, key, valueIn(world), shape)
    expect([shape, answer.status, answer.body.error]).toEqual([shape, status, error])
  }
  expect(await state()).toEqual(before)
}

/** A resource out of reach answers as one that does not exist; the shape of the body is looked at first. */
async function hidden(operation: Operation, world: World, key: string): Promise<void> {
  const before = await state()
  if (operation.hasBody) {
    expect((await send(operation, key, valueIn(world), 'invalid')).status).toBe(400)
  }
  const answer = await send(operation, key, valueIn(world))
  expect([answer.status, answer.body.error]).toEqual([404, 'not_found'])
  const absent = await send(operation, key, missing)
  expect(absent.status).toBe(404)
  // The number of a process is too short to be looked for in a text, and a foreign server hides it.
  const ids = Object.keys(PARAMETERS).filter((name) => name !== 'pid')
  const inTheSameWords = ids.reduce(
    (text, name) => text.replaceAll(valueIn(world)(name), missing(name)),
    JSON.stringify(answer.body),
  )
  expect(inTheSameWords).toBe(JSON.stringify(absent.body))
  expect(await state()).toEqual(before)
}

/** An operation on no resource answers, and tells nothing of what the key does not reach. */
async function tellsNothingOf(operation: Operation, world: World, key: string): Promise<void> {
  const answer = await send(operation, key, valueIn(world))
  const { status } = EXAMPLES[operation.id] ?? {}
  if (status === undefined) expect(answer.status).toBeLessThan(300)
  else expect(answer.status).toBe(status)
  const { pid: _, ...ids } = world
  for (const id of Object.values(ids)) expect(JSON.stringify(answer.body)).not.toContain(id)
}

async function allowed(operation: Operation, key: string, world: World): Promise<void> {
  if (operation.hasBody) {
    expect((await send(operation, key, valueIn(world), 'invalid')).status).toBe(400)
  }
  const answer = await send(operation, key, valueIn(world))
  expect([answer.status, answer.body]).toEqual([expect.any(Number), expect.any(Object)])
  const { status } = EXAMPLES[operation.id] ?? {}
  if (status === undefined) expect(answer.status).toBeLessThan(300)
  else expect(answer.status).toBe(status)
}

test('every operation has an example, with both bodies and all parameters, and none is left over', () => {
  const called = operations.filter(({ isPublic }) => !isPublic)
  expect(Object.keys(EXAMPLES).sort()).toEqual(called.map(({ id }) => id).sort())
  for (const { id, hasBody, parameters } of called) {
    const { body, invalid } = EXAMPLES[id] ?? {}
    expect([id, body !== undefined, invalid !== undefined]).toEqual([id, hasBody, hasBody])
    expect([id, parameters.filter((name) => !(name in PARAMETERS))]).toEqual([id, []])
  }
})

for (const operation of operations) {
  const accountLevel = isAccountLevel(operation.id)
  // Its body names a resource where its path does not.
  const { body } = EXAMPLES[operation.id] ?? {}
  const onResource = operation.parameters.length > 0 || typeof body === 'function'

  describe(operation.id, () => {
    if (operation.isPublic) {
      test('needs no key', async () => {
        expect((await fetch(`${berth.info.base_url}${operation.path}`)).status).toBe(200)
      })
      return
    }

    test('no key, a garbage key and the admin token: 401', async () => {
      for (const key of [null, 'garbage', `sk_live_${'x'.repeat(43)}`, berth.info.admin_token])
        await refused(operation, untouched, key, 401, 'missing_or_invalid_api_key')
    })

    if (accountLevel) {
      test('a scoped key, wherever it is scoped to: 403, before the body is looked at', async () => {
        await refused(operation, untouched, elsewhere, 403, 'forbidden')
        await refused(operation, untouched, await keyFor([untouched.serverId]), 403, 'forbidden')
      })
    } else {
      test(`a key scoped elsewhere: ${onResource ? '404' : 'nothing of what it does not reach'}`, async () => {
        await (onResource ? hidden : tellsNothingOf)(operation, untouched, elsewhere)
      })

      test('a key scoped here: done', async () => {
        await onWorld(berth, untouched, operation, async (here) =>
          allowed(operation, await keyFor([elsewhereServer, here.serverId]), here),
        )
      })
    }

    test(`a key of another account: ${onResource ? '404' : 'nothing of this one'}`, async () => {
      await (onResource ? hidden : tellsNothingOf)(operation, untouched, otherAccount)
    })

    test('an account-wide key: done', async () => {
      await onWorld(berth, untouched, operation, (here) => allowed(operation, berth.info.api_key, here))
    })
  })
}

test('the admin token used as a key is refused with what it is for', async () => {
  const authorization = `Bearer ${berth.info.admin_token}`
  const { status, body } = await berth.call('GET', '/servers', undefined, { authorization })
  expect(status).toBe(401)
  expect(body.message).toBe(
    'That is an admin token, which only the control API (/_berth) takes. Send an API key here (sk_live_…).',
  )
})
