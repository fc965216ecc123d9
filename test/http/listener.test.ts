import { expect, test } from 'bun:test'
import { connect } from 'node:net'
import { StartupError } from '../../src/errors.ts'
import { Listener } from '../../src/http/listener.ts'
import { testBerth } from '../support/berth.ts'
import { freePort } from '../support/ports.ts'

const answer = () => new Response('berth')

test('a command on a server cannot listen where callers of "localhost" send their keys', async () => {
  await using berth = await testBerth()
  const serverId = await berth.server()
  const { port } = new URL(berth.info.base_url)
  const headers = { authorization: `Bearer ${berth.info.api_key}` }
  expect((await fetch(`http://[::1]:${port}/servers`, { headers })).status).toBe(200)
  const squat = `import socket; s = socket.socket(socket.AF_INET6); s.bind(("::1", ${port}))`
  const { stderr } = await berth.exec(serverId, `python3 -c '${squat}'`)
  expect(stderr).toContain('Address already in use')
})

test('a caller on ::1 is known as one of this machine, and ends with the rest', async () => {
  const seen: (string | null)[] = []
  const listener = new Listener('127.0.0.1', freePort())
  listener.open((request) => {
    seen.push(listener.addressOf(request))
    return answer()
  })
  for (const host of ['127.0.0.1', '[::1]']) await (await fetch(`http://${host}:${listener.port}`)).text()
  expect(seen).toEqual(['127.0.0.1', '::1'])
  await listener.close()
  const refused = new Promise((resolve) => connect(listener.port, '::1').on('error', resolve))
  expect(await refused).toMatchObject({ code: 'ECONNREFUSED' })
})

test('a port that another program has on ::1 is refused, and let go of on 127.0.0.1', () => {
  using taken = Bun.serve({ hostname: '::1', port: 0, fetch: answer })
  const { port } = taken
  if (port === undefined) throw new Error('no port')
  expect(() => new Listener('127.0.0.1', port)).toThrow(StartupError)
  expect(() => new Listener('127.0.0.1', port)).toThrow(`Port ${port} on ::1 is taken`)
})
