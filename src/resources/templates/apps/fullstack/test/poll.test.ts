import { afterAll, expect, test } from 'bun:test'
import { createApp } from '../src/app.ts'
import { Poll, type PollView } from '../src/poll.ts'

const poll = new Poll('Tea or coffee?', ['Tea', 'Coffee'])
const server = createApp({ hostname: '127.0.0.1', port: 0, poll, development: false })
afterAll(() => server.stop(true))

async function call(path: string, voter?: string, option?: unknown) {
  const response = await fetch(new URL(path, server.url), {
    method: option === undefined ? 'GET' : 'POST',
    headers: voter ? { 'x-voter': voter } : {},
    ...(option === undefined ? {} : { body: JSON.stringify({ option }) }),
  })
  return { status: response.status, body: (await response.json()) as PollView & { error?: string } }
}
const votes = (view: PollView) => view.options.map((option) => option.votes)

test('each voter has one vote and may change it', async () => {
  expect(votes((await call('/api/poll/vote', 'voter-one', 0)).body)).toEqual([1, 0])
  expect(votes((await call('/api/poll/vote', 'voter-two', 1)).body)).toEqual([1, 1])
  const changed = await call('/api/poll/vote', 'voter-one', 1)
  expect(votes(changed.body)).toEqual([0, 2])
  expect(changed.body.chosen).toBe(1)
  expect((await call('/api/poll')).body.chosen).toBeNull()
})

test.each([2, -1, 0.5, '0', null])('the option %p is refused', async (option) => {
  const before = poll.view(null)
  expect((await call('/api/poll/vote', 'voter-one', option)).status).toBe(400)
  expect(poll.view(null)).toEqual(before)
})

test('a vote without a voter is refused', async () => {
  expect((await call('/api/poll/vote', undefined, 0)).status).toBe(400)
})

test('the page is bundled, and unknown paths of the API are 404', async () => {
  const page = await (await fetch(server.url)).text()
  expect(page).toContain('id="options"')
  const script = /src="([^"]+\.js)"/.exec(page)?.[1] ?? ''
  expect((await fetch(new URL(script, server.url))).status).toBe(200)
  expect((await call('/api/nothing')).status).toBe(404)
  expect(await (await fetch(new URL('/health', server.url))).json()).toEqual({ status: 'ok' })
})
