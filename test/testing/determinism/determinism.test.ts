import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { API_OPERATIONS, listOperations, OperationIndex } from '../../../src/contract/operations.ts'
import { type TestBerth, testBerth } from '../../support/berth.ts'
import { type Receiver, receiver, verify } from '../../support/receiver.ts'
import type { Recorded } from './recording.ts'
import { everyOperation } from './script.ts'

const FIXTURES = join(import.meta.dir, '../../../fixtures/shop/fixtures.yaml')

/** Everything that one run shows. */
interface Run {
  requests: Recorded[]
  delivered: { path: string; id: string | undefined; body: string }[]
}

const start = () =>
  testBerth({
    flags: {
      fixtures: FIXTURES,
      'rng-seed': 7,
      freeze: '2030-01-01T00:00:00Z',
      'allow-local-webhooks': true,
    },
  })

async function run(berth: TestBerth, hooks: Receiver): Promise<Run> {
  hooks.received.length = 0
  const { requests, secret } = await everyOperation(berth, hooks)
  // A signature is of the moment when it is made, by the machine's calendar: it verifies, with the same secret.
  for (const received of hooks.received) expect(() => verify(secret, received)).not.toThrow()
  const delivered = hooks.received.map(({ path, headers, body }) => ({
    path,
    id: headers['webhook-id'],
    body,
  }))
  return { requests, delivered }
}

function expectSame(one: Run, other: Run): void {
  // One by one: a failure then shows the first request that differs.
  for (const [index, request] of one.requests.entries()) expect(other.requests[index]).toEqual(request)
  expect(other).toEqual(one)
}

test('the same requests, to every operation, have the same answers to the byte: in another run and after a reset', async () => {
  await using hooks = await receiver()
  let first: Run
  let credentials: string[]
  {
    await using berth = await start()
    credentials = [berth.info.api_key, berth.info.admin_token]
    first = await run(berth, hooks)
    await berth.control('POST', '/reset')
    expectSame(first, await run(berth, hooks))
  }
  await using berth = await start()
  expect([berth.info.api_key, berth.info.admin_token]).toEqual(credentials)
  expectSame(first, await run(berth, hooks))

  const index = new OperationIndex(listOperations(API_OPERATIONS))
  const asked = new Set(
    first.requests.map(({ method, path }) => index.match(method, path.split('?')[0] ?? '')?.id),
  )
  expect(index.all.map(({ id }) => id).filter((id) => !asked.has(id))).toEqual([])
}, 120_000)

test('what an inbox gets changes no id of a request to the control API', async () => {
  const idAfter = async (posts: number): Promise<string | null> => {
    await using berth = await testBerth({
      flags: { 'rng-seed': 7, freeze: '2030-01-01T00:00:00Z', isolation: 'none' },
    })
    const url = `${berth.info.base_url}/_berth/inbox/one`
    for (let at = 0; at < posts; at += 1) await fetch(url, { method: 'POST' })
    return (await berth.control('GET', '/clock')).headers.get('x-request-id')
  }
  expect(await idAfter(3)).toBe(await idAfter(0))
})
