import { expect, test } from 'bun:test'
import { GatewayError } from '../../../src/hosting/sites/upstream.ts'
import { until } from '../../support/processes.ts'
import { app, openSockets, Raw, testSite } from './support.ts'

test('the lowest free port is reserved: neither one that is taken nor one that another program has', async () => {
  const before = openSockets()
  const { Gateway } = await import('../../../src/hosting/sites/gateway.ts')
  const busy = [0, 1].map(() => Bun.listen({ hostname: '127.0.0.1', port: 0, socket: { data() {} } }))
  const first = Math.min(...busy.map(({ port }) => port))
  const gateway = new Gateway({
    host: '127.0.0.1',
    ports: { first, last: first + 20 },
    publicHost: null,
    logger: console,
  })
  const found = await gateway.reserve(() => false)
  expect(found).toBeGreaterThan(first)
  expect(await gateway.reserve(() => false)).toBe(found)
  expect(await gateway.reserve((port) => port === found)).toBeGreaterThan(found)
  const refusal = await gateway.reserve(() => true).catch((error) => error)
  expect(refusal).toBeInstanceOf(GatewayError)
  expect(refusal.message).toContain('--project-ports')
  for (const listener of busy) listener.stop(true)
  await gateway.close()
  await until(() => openSockets() <= before, 'all sockets are closed')
})

test('a site whose port another program has is told of once, and answers when that lets go of it', async () => {
  await using backend = app(() => new Response('here'))
  await using first = await testSite()
  const site = await first.gateway.open({ port: first.port, slug: null, onUse: () => () => {} })
  site.setUpstream(backend.upstream)
  await Bun.sleep(20)
  await first.site.close()
  await until(async () => {
    const response = await fetch(site.url).catch(() => null)
    return (await response?.text()) === 'here'
  }, 'it answers')
  expect(first.log().match(/taken by another program/g)).toHaveLength(1)
})

test('a closed site cuts off what is under way and listens no more', async () => {
  await using backend = app(() => new Promise<Response>(() => {}))
  await using site = await testSite(backend)
  using client = await Raw.to(site.port)
  client.send('GET / HTTP/1.1\r\nHost: localhost\r\n\r\n')
  await until(() => site.uses.open === 1, 'it is under way')
  await site.site.close()
  await client.end()
  expect(site.uses.open).toBe(0)
  await expect(fetch(site.site.url)).rejects.toThrow()
})

test('a site has both addresses of "localhost", or waits for the one that another program has', async () => {
  await using backend = app(() => new Response('here'))
  await using first = await testSite(backend)
  expect(await (await fetch(`http://[::1]:${first.port}/`)).text()).toBe('here')

  const other = Bun.listen({ hostname: '::1', port: 0, socket: { data() {} } })
  const { Gateway } = await import('../../../src/hosting/sites/gateway.ts')
  const ports = { first: other.port, last: other.port }
  const gateway = new Gateway({ host: '127.0.0.1', ports, publicHost: null, logger: console })
  await expect(gateway.reserve(() => false)).rejects.toThrow(GatewayError)
  await gateway.close()

  const site = await first.gateway.open({ port: other.port, slug: null, onUse: () => () => {} })
  site.setUpstream(backend.upstream)
  expect(await (await fetch(site.url)).text()).toBe('here')
  expect(first.log()).toContain('taken by another program')
  other.stop(true)
  await until(async () => {
    const response = await fetch(`http://[::1]:${other.port}/`).catch(() => null)
    return (await response?.text()) === 'here'
  }, 'it answers on ::1')
})
