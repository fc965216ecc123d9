import { expect, test } from 'bun:test'
import { Gateway } from '../../../src/hosting/sites/gateway.ts'
import { listenFailure } from '../../../src/hosting/sites/ports.ts'
import { GatewayError } from '../../../src/hosting/sites/upstream.ts'
import { createLogger } from '../../../src/runtime/logger.ts'
import { freePort } from '../../support/ports.ts'
import { until } from '../../support/processes.ts'
import { app, get, openSockets, Raw, testSite } from './support.ts'

test('the lowest free port is reserved: neither one that is taken, nor one that another program has or reserves', async () => {
  const before = openSockets()
  const busy = [0, 1].map(() => Bun.listen({ hostname: '127.0.0.1', port: 0, socket: { data() {} } }))
  const first = Math.min(...busy.map(({ port }) => port))
  const gateway = new Gateway({
    host: '127.0.0.1',
    ports: { first, last: first + 20 },
    publicHost: null,
    logger: console,
  })
  const reserved = await gateway.reserve(() => false)
  const found = reserved.port
  expect(found).toBeGreaterThan(first)
  const next = await gateway.reserve(() => false)
  expect(next.port).toBeGreaterThan(found)
  reserved.release()
  const again = await gateway.reserve(() => false)
  expect(again.port).toBe(found)
  again.release()
  expect((await gateway.reserve((port) => port === found)).port).toBeGreaterThan(next.port)
  const refusal = await gateway.reserve(() => true).catch((error) => error)
  expect(refusal).toBeInstanceOf(GatewayError)
  expect(refusal.message).toContain('--project-ports')
  for (const listener of busy) listener.stop(true)
  await gateway.close()
  await until(() => openSockets() <= before, 'all sockets are closed')
})

test('no project gets a port that browsers refuse', async () => {
  const ports = { first: 6665, last: 6678 }
  const gateway = new Gateway({ host: '127.0.0.1', ports, publicHost: null, logger: console })
  expect((await gateway.reserve(() => false)).port).toBeGreaterThan(6669)
  const refusal = await gateway.reserve((port) => port > 6669).catch((error) => error)
  expect(refusal).toBeInstanceOf(GatewayError)
  expect(refusal.message).toContain('browsers')
  await gateway.close()
})

test('a reserved port is held until its site listens there, and as long as that does', async () => {
  await using backend = app(() => new Response('here'))
  const first = freePort()
  const ports = { first, last: first + 10 }
  const options = { host: '127.0.0.1', ports, publicHost: null, logger: console }
  const gateway = new Gateway(options)
  const other = new Gateway(options)
  const reserved = await gateway.reserve(() => false)
  const { port } = reserved
  expect((await other.reserve(() => false)).port).not.toBe(port)
  const site = await gateway.open({ port, slug: null, onUse: () => () => {} })
  site.setUpstream(backend.upstream)
  reserved.release()
  expect((await other.reserve(() => false)).port).not.toBe(port)
  for (const host of ['127.0.0.1', '[::1]'])
    expect(await (await fetch(`http://${host}:${port}/`)).text()).toBe('here')
  await gateway.close()
  expect((await other.reserve(() => false)).port).toBe(port)
  await other.close()
})

test('the port of a site that is closed, or not open yet, is not another berth’s', async () => {
  const first = freePort()
  const ports = { first, last: first + 10 }
  const options = { host: '127.0.0.1', ports, publicHost: null, logger: console }
  const gateway = new Gateway(options)
  const other = new Gateway(options)
  const reserved = await gateway.reserve(() => false)
  reserved.release()
  const theirs = await other.reserve(() => false)
  expect(theirs.port).not.toBe(reserved.port)
  const site = await gateway.open({ port: reserved.port, slug: null, onUse: () => () => {} })
  await site.close()
  expect((await other.reserve((port) => port === theirs.port)).port).not.toBe(reserved.port)
  await gateway.close()

  // As after a start with a record of it.
  const again = new Gateway(options)
  again.claim([reserved.port])
  expect((await other.reserve((port) => port === theirs.port)).port).not.toBe(reserved.port)
  // Deleted since.
  const next = await again.reserve((port) => port !== reserved.port)
  expect(next.port).toBe(reserved.port)
  await Promise.all([again.close(), other.close()])
})

test('a site whose port another program has is reported once, and responds when that lets go of it', async () => {
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

test('a port that cannot be opened for another reason is not called taken: the reason and the remedy are named', async () => {
  // Of a network for documentation (RFC 5737), which no machine has.
  const host = '192.0.2.1'
  const lines: string[] = []
  const logger = createLogger('debug', (line) => lines.push(line), Date.now)
  const port = freePort()
  const gateway = new Gateway({ host, ports: { first: port, last: port }, publicHost: null, logger })
  const reason = `Port ${port} cannot be opened: this machine does not have the address ${host}`
  await expect(gateway.reserve(() => false)).rejects.toThrow(reason)
  const told: unknown[] = []
  const tell = (what: unknown) => void told.push(what)
  const options = { port, slug: null, onUse: () => () => {}, onPortTaken: tell, onListenFailure: tell }
  await gateway.open(options)
  await gateway.close()
  expect(told).toEqual([expect.stringContaining(reason)])
  expect(lines.join()).toContain('--host ADDRESS')
})

test('a port that berth may not open, or has no descriptor for, is named as that', () => {
  const denied = listenFailure(Object.assign(new Error(), { code: 'EACCES' }), '127.0.0.1', 80)
  const remedy = expect.stringContaining('--project-ports FIRST-LAST')
  expect(denied).toMatchObject({ isTaken: false, reason: remedy })
  const script = `import { listenFailure } from '${require.resolve('../../../src/hosting/sites/ports.ts')}'
    import { openSync } from 'node:fs'
    try { for (;;) openSync('/dev/null') } catch {}
    try { Bun.listen({ hostname: '127.0.0.1', port: 0, socket: { data() {} } }) }
    catch (error) { process.stdout.write(listenFailure(error, '127.0.0.1', 1).reason) }`
  const child = Bun.spawnSync(['sh', '-c', 'ulimit -n 64; exec "$0" -e "$1"', process.execPath, script])
  expect(child.stdout.toString()).toContain('ulimit -n')
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

test('a gateway takes a bounded number of connections: idle ones make room, those under way stay, others are refused', async () => {
  const slows = { count: 0 }
  await using backend = app((request) => {
    if (!request.url.endsWith('/slow')) return new Response('here')
    slows.count += 1
    return new Promise<Response>(() => {})
  })
  await using site = await testSite({ ...backend, maxClients: 3, times: { crowdedMs: 0, lingerMs: 100 } })
  using slow = await Raw.to(site.port)
  slow.send(get('/slow'))
  await until(() => slows.count === 1, 'it is under way')
  using one = await Raw.to(site.port)
  using other = await Raw.to(site.port)
  for (const client of [one, other]) {
    client.send(get('/'))
    await client.until('here')
  }
  const isServed = async () => {
    using client = await Raw.to(site.port)
    client.send(get('/', 'Connection: close'))
    return (await client.end()).endsWith('here')
  }
  // Refused, until an idle connection has been closed for the next: the other one may have become idle later.
  await until(isServed, 'there is room')
  await until(() => one.ended || other.ended, 'an idle one is closed')
  expect(slow.ended).toBe(false)

  const more: Raw[] = []
  for (let n = 0; n < 2; n++) {
    await until(isServed, 'there is room')
    const client = await Raw.to(site.port)
    client.send(get('/slow'))
    await until(() => slows.count === 2 + n, 'it is under way')
    more.push(client)
  }
  expect(await isServed()).toBe(false)
  expect(site.log()).toContain('ulimit -n')
  for (const client of [slow, ...more]) client.socket.destroy()
  await until(isServed, 'there is room again')
})
