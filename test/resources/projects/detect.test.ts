import { expect, test } from 'bun:test'
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { berthForTests } from '../../support/berth.ts'
import { until } from '../../support/processes.ts'
import { archiveOf } from '../../support/projects.ts'
import { call, serve } from '../../support/serve.ts'

const FILES = {
  'only-in-this-source.txt': '',
  'web/package.json': '{\n  "scripts": {\n    "start": "node server.js"\n  }\n}\n',
  'web/server.js': 'require("fs").writeFileSync("ran", "")',
}

const berth = await berthForTests({ flags: { 'allow-local-sources': true } })
const serverId = await berth.server()

const detect = (body: object, on = serverId) => berth.call('POST', `/servers/${on}/projects/detect`, body)

/** Returns the paths in a data directory that come from the source. */
const kept = (dataDir: string): string[] =>
  readdirSync(dataDir, { recursive: true, encoding: 'utf8' }).filter((path) =>
    /only-in-this-source|package\.json$|\/archive$/.test(path),
  )

/** A server of archives that holds each response back until it is let go. */
async function slowArchives() {
  const { data } = await archiveOf(FILES)
  const held: (() => void)[] = []
  const server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    idleTimeout: 0,
    async fetch() {
      await new Promise<void>((resolve) => held.push(resolve))
      return new Response(Buffer.from(data, 'base64'))
    },
  })
  return { source: { type: 'archive', url: `http://127.0.0.1:${server.port}/a.tar.gz` }, held, server }
}

test('shows what is in an archive, with its evidence, and keeps and runs nothing of it', async () => {
  const { status, body } = await detect({ source: await archiveOf(FILES) })
  expect(status).toBe(200)
  expect(body).toMatchObject({
    ...{ directory: 'web', start: 'bun run start', serves: null, problem: null, left_out: [], others: [] },
    berth_json: { start: 'bun run start' },
  })
  expect(body.evidence).toContainEqual({
    file: 'web/package.json',
    line: 3,
    says: '"start": "node server.js"',
  })
  expect(kept(berth.dataDir)).toEqual([])
  expect((await berth.call('GET', `/servers/${serverId}/projects`)).body.projects).toEqual([])
})

test('looks at a directory that is named, and at a template', async () => {
  const source = { ...(await archiveOf({ 'a/index.html': 'a', 'b/index.html': 'b' })), directory: 'b' }
  expect((await detect({ source })).body).toMatchObject({ directory: 'b', serves: 'b' })
  expect((await detect({ template: 'bun-api' })).body).toMatchObject({ problem: null, others: [] })
})

test('says what is missing as a problem, not as a refusal', async () => {
  const { status, body } = await detect({ source: await archiveOf({ 'notes.txt': 'nothing to run' }) })
  expect(status).toBe(200)
  expect(body).toMatchObject({ kind: null, start: null, serves: null, berth_json: null })
  expect(body.problem).toContain('notes.txt')
})

test.each([
  ['no code', {}, 'There is no code to look at'],
  ['a blank source', { source: { type: 'blank' } }, 'There is no code to look at'],
  ['a damaged archive', { source: { type: 'archive', data: 'eHg=' } }, 'The archive is refused.'],
  ['a directory above it', { source: { type: 'archive', data: 'eHg=', directory: '..' } }, 'without ".."'],
  ['a url that is not allowed', { source: { type: 'git', url: 'http://127.0.0.1/x' } }, 'source.url'],
])('refuses %s with 400', async (_, body, message) => {
  const refused = await detect(body)
  expect(refused.status).toBe(400)
  expect(refused.body.message).toContain(message)
})

test('is refused to a key that reaches only certain projects, and to one of other servers', async () => {
  const { id } = (await berth.call('POST', `/servers/${serverId}/projects`, { name: 'x' })).body
  const source = await archiveOf(FILES)
  const asked = async (scope: object): Promise<number> => {
    const { body } = await berth.call('POST', '/keys', { label: 'k', ...scope })
    const headers = { authorization: `Bearer ${body.key}` }
    return (await berth.call('POST', `/servers/${serverId}/projects/detect`, { source }, headers)).status
  }
  expect(await asked({ allowed_project_ids: [id] })).toBe(403)
  expect(await asked({ allowed_server_ids: [await berth.server()] })).toBe(404)
})

test('runs two at a time, and the third when one has ended', async () => {
  const { source, held, server } = await slowArchives()
  const looks = Array.from({ length: 3 }, () => detect({ source }))
  await until(() => held.length === 2, 'two to be fetched')
  expect((await detect({})).status).toBe(400)
  expect(held.length).toBe(2)
  held[0]?.()
  await until(() => held.length === 3, 'the third to be fetched')
  for (const letGo of held) letGo()
  expect((await Promise.all(looks)).map(({ status }) => status)).toEqual([200, 200, 200])
  await server.stop(true)
})

test('leaves nothing behind when berth is killed meanwhile', async () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'berth-detect-'))
  const { source, held, server } = await slowArchives()
  const options = ['--port', '0', '--data', dataDir, '--allow-local-sources']
  const killed = serve(options)
  const info = await killed.ready
  const { body } = await call(info, 'POST', '/servers', {})
  const look = call(info, 'POST', `/servers/${body.id}/projects/detect`, { source }).catch(() => null)
  await until(() => held.length === 1, 'it to be fetched')
  const stagings = () => readdirSync(join(dataDir, 'servers', body.id)).filter((name) => name.startsWith('.'))
  killed.child.kill('SIGKILL')
  await killed.child.exited
  await look
  await server.stop(true)
  const next = serve(options)
  await next.ready
  await until(() => kept(dataDir).length === 0, 'what was staged to be gone')
  expect(stagings()).toEqual([])
  next.child.kill('SIGTERM')
  await next.child.exited
  rmSync(dataDir, { recursive: true, force: true })
})
