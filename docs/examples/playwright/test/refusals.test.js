import { expect, test } from './fixtures.js'

test('402 when the budget is used up', async ({ own: { account, request } }) => {
  const { id } = await (await request.post('/servers')).json()
  await account.change({ budget_cap: 10, credits_used: 10 })
  const refused = await request.post(`/servers/${id}/tasks`, { data: { goal: 'complete: done' } })
  expect(refused.status()).toBe(402)
  expect(await refused.json()).toMatchObject({ error: 'budget_exceeded' })
})

test('403 for what the plan does not allow', async ({ own: { account, request } }) => {
  await account.change({ limits: { tiers: ['small'] } })
  const refused = await request.post('/servers', { data: { tier: 'large' } })
  expect(refused.status()).toBe(403)
  expect(await refused.json()).toMatchObject({ error: 'plan_limit' })
})

test('502 once, then it works again', async ({ own: { account, request } }) => {
  await account.fail('servers.create', { backend: 'fail' }, { times: 1 })
  expect((await request.post('/servers')).status()).toBe(502)
  expect((await request.post('/servers')).status()).toBe(201)
})
