import { expect, test } from 'bun:test'
import { berthForTests } from '../../support/berth.ts'
import { built } from '../../support/builds.ts'
import { until } from '../../support/processes.ts'
import { archiveOf, created, logged, ready, settled } from '../../support/projects.ts'

const berth = await berthForTests({ flags: { plan: { projects: { small: 20 } } } })
const serverId = await berth.server()

/** Answers with variables, and with what the build made of them. */
const APP = `Bun.serve({ port: process.env.PORT, hostname: process.env.HOST, fetch: async () => Response.json({
  mark: process.env.MARK, url: process.env.BERTH_URL, built: (await Bun.file('built').text()).trim() }) })`

const BUILD = 'echo "$MARK $BERTH_URL" > built'

const seen = async (url: string | null): Promise<Record<string, string>> =>
  (await fetch(String(url))).json() as never

const withoutSlash = (url: string | null) => String(url).replace(/\/$/, '')

const at = (value: Record<string, string>) =>
  archiveOf({ 'app.ts': APP, 'berth.json': JSON.stringify({ build: BUILD, start: 'bun app.ts' }), ...value })

test('a build gets the defaults of variables that the running app gets, and secrets above them', async () => {
  const source = await at({ '.env.example': 'MARK=example' })
  const { url } = await ready(berth, serverId, { visibility: 'public', source })
  const address = withoutSlash(url)
  expect(await seen(url)).toEqual({ mark: 'example', url: address, built: `example ${address}` })
  const other = await ready(berth, serverId, { visibility: 'public', source, env: { MARK: 'own' } })
  expect(await seen(other.url)).toMatchObject({ mark: 'own', built: `own ${withoutSlash(other.url)}` })
})

test.each([
  ['.env', 'bun app.ts'],
  ['.env.production', 'bun app.ts'],
  ['.env.local', 'bun app.ts'],
  ['.env.production.local', 'bun app.ts'],
  ['config/settings.env', 'bun --env-file=config/settings.env app.ts'],
  ['conf.env', 'bun --env-file conf.env app.ts'],
])('a value of the app’s own %s beats that of an example, and is not asked for', async (file, start) => {
  const source = await archiveOf({
    'app.ts': APP,
    built: '',
    'berth.json': JSON.stringify({ start }),
    '.env.example': 'MARK=example\nTOKEN=\n',
    [file]: 'MARK=file\nTOKEN=t\n',
  })
  const { url } = await ready(berth, serverId, { visibility: 'public', source })
  expect(await seen(url)).toMatchObject({ mark: 'file' })
})

test('an app has its own address, unless it has a variable of that name or is private', async () => {
  const source = await at({})
  const project = await ready(berth, serverId, { visibility: 'public', source })
  const { id, url } = project
  expect(await seen(url)).toMatchObject({ url: withoutSlash(url) })
  const starts = async () => (await logged(berth, id)).match(/Answers on port/g)?.length
  await berth.call('PATCH', `/projects/${id}`, { visibility: 'private' })
  await until(async () => (await starts()) === 2, 'the app to be restarted')
  const seenInside = `cat /proc/[0-9]*/environ | tr '\\0' '\\n' | grep -F 'BERTH_URL=${withoutSlash(url)}'`
  await until(async () => (await berth.exec(serverId, seenInside)).stdout === '', 'the version before to end')
  await berth.call('PATCH', `/projects/${id}`, { visibility: 'public' })
  await until(async () => (await starts()) === 3, 'the app to be restarted again')
  expect(await seen(url)).toMatchObject({ url: withoutSlash(url) })
  await berth.call('PUT', `/projects/${id}/secrets`, { secrets: { BERTH_URL: 'https://shop.example' } })
  await until(async () => (await seen(url)).url === 'https://shop.example', 'the app to have its own')
})

test('what a server publishes has its address, in its build too', async () => {
  const server = await berth.server()
  const put = (path: string, content: string) =>
    berth.call('PUT', `/servers/${server}/files`, { path, content })
  await put('app.ts', APP)
  await put('berth.json', JSON.stringify({ build: BUILD, start: 'bun app.ts' }))
  const { body } = await berth.call('POST', `/servers/${server}/deployments`)
  const address = withoutSlash(body.url)
  expect(await seen(body.url)).toEqual({ url: address, built: address })
})

test('what a build publishes first has its address, in its own build too', async () => {
  const server = await berth.server()
  const put = (path: string, content: string) =>
    berth.call('PUT', `/servers/${server}/files`, { path, content })
  await put('app.ts', APP)
  await put('berth.json', JSON.stringify({ build: BUILD, start: 'bun app.ts' }))
  const { url } = await built(berth, server, 'Leave it')
  const address = withoutSlash(url)
  expect(await seen(url)).toEqual({ url: address, built: address })
})

test('an app has the seconds of its "timeout" to respond', async () => {
  const code = 'await Bun.sleep(60_000)'
  const source = await archiveOf({ 'app.ts': code, 'berth.json': '{"start": "bun app.ts", "timeout": 1}' })
  const { id, init_phase } = await settled(berth, (await created(berth, serverId, { source })).id, 30_000)
  expect(init_phase).toBe('failed')
  expect(await logged(berth, id)).toContain('The app did not listen on a port within 1 s.')
})
