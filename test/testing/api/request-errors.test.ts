import { expect, test } from 'bun:test'
import { testBerth } from '../../support/berth.ts'

test('failures are grouped by operation, status and code, the latest first, each with its latest request', async () => {
  await using berth = await testBerth({ flags: { freeze: '2030-01-01T00:00:00Z' } })
  const server = await berth.server()
  const errors = async (query = '') => (await berth.control('GET', `/requests/errors${query}`)).body.errors
  await berth.call('GET', '/servers')
  expect(await errors()).toEqual([])
  await berth.call('GET', '/servers/srv_a')
  await berth.call('GET', '/servers/srv_b')
  await berth.control('POST', '/clock', { advance: '1h' })
  const last = await berth.call('GET', '/servers/srv_c')
  await berth.call('GET', '/servres')
  await berth.call('POST', `/servers/${server}/exec`, {}, { 'x-berth-client': 'cli' })
  const anonymous = await berth.call('GET', '/servers', undefined, { authorization: 'Bearer nobody' })
  const times = { first_at: '2030-01-01T00:00:00.000Z', last_at: '2030-01-01T01:00:00.000Z' }
  const all = await errors()
  expect(all).toMatchObject([
    {
      ...{ operation: 'servers.list', method: 'GET', status: 401, code: 'missing_or_invalid_api_key' },
      ...{ count: 1, last_id: anonymous.headers.get('x-request-id') },
    },
    { operation: 'exec.run', status: 400, code: 'bad_request', count: 1 },
    { operation: null, method: 'GET', status: 404, code: 'not_found', count: 1 },
    {
      ...{ operation: 'servers.get', method: 'GET', status: 404, code: 'not_found' },
      ...{ count: 3, ...times, last_id: last.headers.get('x-request-id') },
    },
  ])
  expect(await errors('?own=false')).toEqual(all.filter(({ status }: { status: number }) => status !== 400))
  expect(await errors('?own=true')).toHaveLength(1)
  expect(await errors('?operation=servers.get')).toEqual([all[3]])
  expect(await errors('?status=404')).toEqual([all[2], all[3]])
  expect(await errors('?status=5xx')).toEqual([])
  expect((await berth.control('GET', '/requests/errors?status=many')).status).toBe(400)
  const { accounts } = (await berth.control('GET', '/accounts')).body
  // Whose key it is counts also at a path that leads nowhere.
  expect(await errors(`?account_id=${accounts[0].id}`)).toEqual([all[1], all[2], all[3]])
})

test('the response of a fault is a code only if it is a word', async () => {
  await using berth = await testBerth()
  const secret = 'sk_live_Secret of somebody'
  const fault = { match: { operation: 'servers.list' }, effect: { error: { status: 502, code: secret } } }
  expect((await berth.control('POST', '/faults', fault)).status).toBe(201)
  await berth.call('GET', '/servers')
  const { body } = await berth.control('GET', '/requests/errors')
  expect(body.errors).toMatchObject([{ operation: 'servers.list', status: 502, code: null, count: 1 }])
  expect(JSON.stringify(body)).not.toContain('Secret')
})
