import { expect, test } from 'bun:test'
import { berthForTests } from '../../support/berth.ts'

/* `before` of the journal, of events and of inboxes: pages that go back, each entry once. */

const berth = await berthForTests()

interface Entry {
  id: string
}

test.each<[path: string, field: string, add: () => Promise<unknown>]>([
  ['/requests', 'requests', () => berth.call('GET', '/servers')],
  ['/events', 'events', () => berth.control('POST', '/events', { event: 'task.created' })],
  [
    '/inbox/pages',
    'entries',
    () => fetch(`${berth.info.base_url}/_berth/inbox/pages`, { method: 'POST', body: 'x' }),
  ],
])('%s goes back page by page, and refuses what cannot be', async (path, field, add) => {
  for (let count = 0; count < 7; count += 1) await add()
  const all: Entry[] = (await berth.control('GET', path)).body[field]
  const paged: Entry[] = []
  for (let before = ''; ; ) {
    const page: Entry[] = (await berth.control('GET', `${path}?limit=3${before && `&before=${before}`}`))
      .body[field]
    if (page.length === 0) break
    paged.push(...page)
    before = page.at(-1)?.id ?? ''
  }
  expect(all.length).toBeGreaterThanOrEqual(7)
  expect(paged.map(({ id }) => id)).toEqual(all.map(({ id }) => id))
  const last = all.at(-1)?.id
  const refusals = await Promise.all(
    [`after=${last}&before=${last}`, 'before=none', 'before=start', `before=${last}&follow=true`].map(
      async (query) => (await berth.control('GET', `${path}?${query}`)).status,
    ),
  )
  expect(refusals).toEqual([400, 400, 400, 400])
})
