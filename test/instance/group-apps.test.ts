import { expect, test } from 'bun:test'
import { type GroupApp, GroupApps } from '../../src/instance/group-apps.ts'
import { createLogger } from '../../src/runtime/logger.ts'

const request = () => new Request('http://127.0.0.1/servers')

/** Returns apps whose routes are loaded by `load`, and the lines of their log. */
function apps(load: () => Promise<GroupApp>) {
  const lines: string[] = []
  const logger = createLogger('error', (line) => lines.push(line), Date.now)
  return { apps: new GroupApps<'servers'>(load, logger), lines }
}

test('routes are loaded once, however many requests wait for them', async () => {
  let loads = 0
  const gate = Promise.withResolvers<void>()
  const { apps: all } = apps(async () => {
    loads += 1
    await gate.promise
    return { fetch: () => new Response('here') }
  })
  const waiting = [all.get('servers'), all.get('servers')]
  gate.resolve()
  const [first, second] = await Promise.all(waiting)
  expect(first).toBe(second as GroupApp)
  expect(all.get('servers')).toBe(first as GroupApp)
  expect(loads).toBe(1)
})

test('routes that could not be loaded give 500 with the cause, and the next request loads them', async () => {
  let loads = 0
  const { apps: all, lines } = apps(async () => {
    loads += 1
    if (loads === 1) throw new Error('EMFILE: too many open files')
    return { fetch: () => new Response('here') }
  })
  const failed = await (await all.get('servers')).fetch(request())
  expect(failed.status).toBe(500)
  expect(await failed.json()).toMatchObject({
    error: 'internal_error',
    message: expect.stringContaining('EMFILE'),
  })
  expect(lines.join('')).toContain('EMFILE')
  const next = await (await all.get('servers')).fetch(request())
  expect(await next.text()).toBe('here')
  expect(loads).toBe(2)
})
