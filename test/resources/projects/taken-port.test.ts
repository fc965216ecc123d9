import { afterAll, beforeAll, expect, test } from 'bun:test'
import { type TestBerth, testBerth } from '../../support/berth.ts'
import { until } from '../../support/processes.ts'
import { archiveOf, ready } from '../../support/projects.ts'

let berth: TestBerth
beforeAll(async () => {
  berth = await testBerth()
})
afterAll(() => berth[Symbol.asyncDispose]())

test('a project whose port another program has says so, until it answers there', async () => {
  const source = await archiveOf({ 'index.html': 'mine' })
  const { id, url } = await ready(berth, await berth.server(), { visibility: 'public', source })
  const project = async () => (await berth.call('GET', `/projects/${id}`)).body
  const show = async (visibility: string) =>
    (await berth.call('PATCH', `/projects/${id}`, { visibility })).body
  expect(await project()).not.toHaveProperty('port_taken')

  await show('private')
  const port = Number(new URL(String(url)).port)
  const other = Bun.serve({ hostname: '127.0.0.1', port, fetch: () => new Response('foreign') })
  try {
    expect(await show('public')).toMatchObject({ url, port_taken: true })
    const { body } = await berth.call('GET', '/projects')
    expect(body.projects).toMatchObject([{ id, port_taken: true }])
    expect(await show('private')).not.toHaveProperty('port_taken')
    expect(await show('public')).toHaveProperty('port_taken', true)
  } finally {
    await other.stop(true)
  }
  await until(async () => (await project()).port_taken === undefined, 'the project to have its port')
  expect(await (await fetch(String(url))).text()).toBe('mine')
})
