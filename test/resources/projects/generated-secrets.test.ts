import { expect, test } from 'bun:test'
import { berthForTests } from '../../support/berth.ts'
import { archiveOf, ready } from '../../support/projects.ts'

const FILES = {
  'app.ts': `Bun.serve({ port: process.env.PORT, fetch: async () => Response.json([process.env.KEY, await Bun.file('built').text()]) })`,
  'app.json': JSON.stringify({ env: { KEY: { generator: 'secret' } } }),
  'berth.json': JSON.stringify({ build: 'printf %s "$KEY" > built', start: 'bun app.ts' }),
}

const berth = await berthForTests()
const serverId = await berth.server()

test('a secret that only has to be secret is made once, is there at the build, and is kept', async () => {
  const source = await archiveOf(FILES)
  const { id, url } = await ready(berth, serverId, { visibility: 'public', source })
  const seen = async (): Promise<string[]> => (await fetch(String(url))).json() as never
  const [key = '', built] = await seen()
  expect(key).toMatch(/^[0-9a-f]{64}$/)
  expect(built).toBe(key)
  await berth.call('POST', `/projects/${id}/restart`)
  expect(await seen()).toEqual([key, key])
  const own = await ready(berth, serverId, { visibility: 'public', source, env: { KEY: 'mine' } })
  expect(await (await fetch(String(own.url))).json()).toEqual(['mine', 'mine'])
})

test('what a server publishes has one, too, and keeps it when it is published again', async () => {
  for (const [path, content] of Object.entries(FILES))
    await berth.call('PUT', `/servers/${serverId}/files`, { path, content })
  const published = async (): Promise<string[]> => {
    const { status, body } = await berth.call('POST', `/servers/${serverId}/deployments`, {})
    expect(status).toBe(201)
    return (await fetch(body.url)).json() as never
  }
  const [key = '', built] = await published()
  expect(key).toMatch(/^[0-9a-f]{64}$/)
  expect(built).toBe(key)
  expect(await published()).toEqual([key, key])
})
