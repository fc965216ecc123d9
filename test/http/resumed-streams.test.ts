import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { EventSourceParserStream } from 'eventsource-parser/stream'
import { type TestBerth, testBerth } from '../support/berth.ts'
import { built } from '../support/builds.ts'
import { ready } from '../support/projects.ts'

let berth: TestBerth
/** The paths of streams, by their kind. Each has several entries. */
const paths: Record<string, string> = {}
const KINDS = [
  'events',
  'requests',
  'an inbox',
  'the log of a project',
  'the log of a build',
  'the log of a deployment',
  'a transcript',
]

beforeAll(async () => {
  berth = await testBerth({ flags: { isolation: 'none' } })
  const server = await berth.server()
  const { id: project } = await ready(berth, server, { template: 'static-site', name: 'shown' })
  const build = await built(berth, server, 'run: echo made')
  await berth.call('PUT', `/servers/${server}/files`, { path: 'index.html', content: 'hello' })
  for (const _ of [1, 2, 3]) await berth.call('POST', `/servers/${server}/deployments`)
  const { body } = await berth.call('POST', `/servers/${server}/tasks`, { goal: 'run: echo done' })
  await berth.control('GET', `/wait?task=${body.task_id}&until=completed`)
  for (const _ of [1, 2, 3]) await berth.control('POST', '/inbox/resumed', {})
  Object.assign(paths, {
    events: '/_berth/events?after=start',
    requests: '/_berth/requests?after=start',
    'an inbox': '/_berth/inbox/resumed?after=start',
    'the log of a project': `/projects/${project}/logs`,
    'the log of a build': `/servers/${server}/builds/${build.id}/logs`,
    'the log of a deployment': `/servers/${server}/deployments/logs`,
    'a transcript': `/servers/${server}/tasks/${body.task_id}/events`,
  })
}, 180_000)
afterAll(() => berth[Symbol.asyncDispose]())

/** An event of a stream as it came. */
interface StreamEvent {
  id: string | undefined
  event: string | undefined
  data: string
}

/** Reads the first events of a stream. */
async function first(count: number, path: string, lastEventId?: string): Promise<StreamEvent[]> {
  const credential = path.startsWith('/_berth/') ? berth.info.admin_token : berth.info.api_key
  const response = await fetch(`${berth.info.base_url}${path}`, {
    headers: {
      accept: 'text/event-stream',
      authorization: `Bearer ${credential}`,
      ...(lastEventId !== undefined && { 'last-event-id': lastEventId }),
    },
  })
  const found: StreamEvent[] = []
  if (response.status !== 200 || !response.body) throw new Error(await response.text())
  const events = response.body.pipeThrough(new TextDecoderStream()).pipeThrough(new EventSourceParserStream())
  for await (const { id, event, data } of events) {
    // Pieces of output are of no entry.
    if (event === 'output' || event === 'text') continue
    found.push({ id, event, data })
    if (found.length === count) break
  }
  return found
}

const GAP: StreamEvent = { id: undefined, event: 'gap', data: '{}' }

describe.each(KINDS)('the stream of %s', (kind) => {
  const path = () => paths[kind] ?? ''

  test('goes on after the entry that a client had last', async () => {
    const all = await first(3, path())
    expect(all).toHaveLength(3)
    expect(new Set(all.map(({ id }) => id)).size).toBe(3)
    for (const [at, { id }] of all.slice(0, 2).entries()) {
      expect(id).toMatch(/^\w+$/)
      expect(await first(2 - at, path(), id)).toEqual(all.slice(at + 1))
    }
  })

  test.each(['evt_00000000000000000000000000', '987654321', '-1', 'é'])(
    'says that there is a gap, and sends what is kept, when that entry is %s, which is not kept',
    async (id) => {
      expect(await first(4, path(), encodeURI(id))).toEqual([GAP, ...(await first(3, path()))])
    },
  )
})

test.each(['/_berth/events', '/_berth/requests?follow=true', '/_berth/inbox/resumed'])(
  '%s sends what a client missed, though the URL asks for what comes only',
  async (path) => {
    const all = await first(3, `${path}${path.includes('?') ? '&' : '?'}after=start`)
    expect(await first(2, path, all[0]?.id)).toEqual(all.slice(1))
  },
)

test('the entry in the URL counts no more when it is gone', async () => {
  const [, event] = await first(2, paths.events ?? '')
  expect(await first(1, '/_berth/events?after=evt_gone', event?.id)).toEqual(
    (await first(3, paths.events ?? '')).slice(2),
  )
  expect(await first(2, '/_berth/events?after=evt_gone', 'evt_gone')).toEqual([
    GAP,
    ...(await first(1, paths.events ?? '')),
  ])
})

test('a filter holds for what a client missed, and after a gap', async () => {
  const path = '/_berth/requests?follow=true&method=POST'
  const posts = await first(3, `${path}&after=start`)
  expect(await first(1, path, posts[1]?.id)).toEqual(posts.slice(2))
  expect(await first(2, path, 'req_gone')).toEqual([GAP, ...posts.slice(0, 1)])
})

test('lines of a log that a client missed come whole, whatever tail its URL asks for', async () => {
  const path = paths['the log of a project'] ?? ''
  const lines = await first(3, path)
  expect(await first(2, `${path}?tail=1`, lines[0]?.id)).toEqual(lines.slice(1))
})
