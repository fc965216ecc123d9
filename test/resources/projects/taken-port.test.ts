import { expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { berthForTests, testBerth } from '../../support/berth.ts'
import { until } from '../../support/processes.ts'
import { archiveOf, ready } from '../../support/projects.ts'

const berth = await berthForTests()

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

test('a deployment whose port another program took while berth was stopped says so, and is live by itself', async () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'berth-taken-'))
  try {
    const first = await testBerth({ dataDir })
    const serverId = await first.server()
    await first.call('PUT', `/servers/${serverId}/files`, { path: 'index.html', content: 'mine' })
    const { url } = (await first.call('POST', `/servers/${serverId}/deployments`)).body
    await first.stop()
    const port = Number(new URL(url).port)
    const other = Bun.serve({ hostname: '127.0.0.1', port, fetch: () => new Response('foreign') })
    try {
      await using again = await testBerth({ dataDir })
      const deployment = async () =>
        (await again.call('GET', `/servers/${serverId}/deployments`)).body.deployments[0]
      await until(async () => (await deployment()).live, 'the deployment to run')
      expect(await deployment()).toMatchObject({ url, live: true, port_taken: true })
      await other.stop(true)
      await until(
        async () => (await deployment()).port_taken === undefined,
        'the deployment to have its port',
      )
      expect(await (await fetch(url)).text()).toBe('mine')
    } finally {
      await other.stop(true)
    }
  } finally {
    rmSync(dataDir, { recursive: true, force: true })
  }
})
