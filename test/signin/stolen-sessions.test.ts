import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { connect } from 'node:net'
import { networkInterfaces } from 'node:os'
import { type TestBerth, testBerth } from '../support/berth.ts'
import { freePort } from '../support/ports.ts'
import { until } from '../support/processes.ts'
import { thorough } from '../support/thorough.ts'
import { probedTiers } from '../support/tiers.ts'
import { Visitor } from '../support/visitor.ts'

/** An address of this machine besides loopback. */
const OWN = Object.values(networkInterfaces())
  .flatMap((all) => all ?? [])
  .find(({ family, internal }) => family === 'IPv4' && !internal)?.address

/**
 * Sends a request with a session in one of several ways, and prints the status of the answer. Arguments: how, host, port,
 * cookie, the request line, a body, and a header of its own.
 */
const THIEF = `
import array, os, socket, sys, time
how, host, port, cookie, line, body, header = sys.argv[1:8]
there = socket.create_connection((host, int(port)))
head = f'{line} HTTP/1.1\\r\\nHost: localhost:{port}\\r\\nCookie: {cookie}\\r\\nConnection: close\\r\\n'
if header:
    head += header + '\\r\\n'
if body:
    head += f'Content-Type: application/x-www-form-urlencoded\\r\\nContent-Length: {len(body)}\\r\\n'
there.sendall((head + '\\r\\n' + body).encode())
if how == 'gone':
    there.close()
    sys.exit()
if how == 'in flight':
    # While it is on its way from one end of a pair to the other, no process has it.
    one, other = socket.socketpair()
    one.sendmsg([b'x'], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array('i', [there.fileno()]))])
    there.close()
    time.sleep(0.5)
    _, sent, _, _ = other.recvmsg(1, socket.CMSG_SPACE(4))
    there = socket.socket(fileno=array.array('i', sent[0][2])[0])
answer = b''
while chunk := there.recv(65536):
    answer += chunk
print(answer.split()[1].decode())
`

/** Holds a connection from a local port to what a server listens on at 127.0.0.2, as a browser does that loads an image there. */
const DECOY = `
import socket, sys
there = socket.socket()
there.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
there.bind(('127.0.0.1', int(sys.argv[2])))
there.connect(('127.0.0.2', int(sys.argv[1])))
print('held', flush=True)
sys.stdin.read()
`

/** Listens for the decoy, then sends a form from the same local port, again and again, and resets each connection at once. */
const TWIN = `
import random, socket, struct, sys, time
port, local, cookie, line, body = sys.argv[1:6]
trap = socket.socket()
trap.bind(('127.0.0.2', int(port)))
trap.listen()
print('listens', flush=True)
caught, _ = trap.accept()
head = f'{line} HTTP/1.1\\r\\nHost: localhost:{port}\\r\\nCookie: {cookie}\\r\\n'
head += f'Content-Type: application/x-www-form-urlencoded\\r\\nContent-Length: {len(body)}\\r\\n\\r\\n'
sent = 0
for _ in range(${thorough ? 1000 : 300}):
    there = socket.socket()
    there.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    there.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0))
    try:
        there.bind(('127.0.0.1', int(local)))
        there.connect(('127.0.0.1', int(port)))
        there.sendall((head + body).encode())
        sent += 1
        until = time.perf_counter() + random.random() * 0.004
        while time.perf_counter() < until:
            pass
    except OSError:
        pass
    there.close()
    time.sleep(0.001)
print(sent, flush=True)
`

/** Asks for a page from a certain local port, prints the status of the answer, and leaves the port free for another. */
const FROM_PORT = `
import socket, struct, sys
port, local, cookie = sys.argv[1:4]
there = socket.socket()
there.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
there.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0))
there.bind(('127.0.0.1', int(local)))
there.connect(('127.0.0.1', int(port)))
there.sendall(f'GET /access HTTP/1.1\\r\\nHost: localhost:{port}\\r\\nCookie: {cookie}\\r\\n\\r\\n'.encode())
print(there.recv(65536).split()[1].decode())
there.close()
`

const python = Bun.which('python3')
if (python === null) console.error('SKIP: what servers do with a session, since no Python is installed')

for (const [isolation, reason] of await probedTiers())
  describe.skipIf(reason !== null || python === null)(
    `the session of a browser, in the hands of a server isolated by ${isolation}${reason ? ` (SKIP: ${reason})` : ''},`,
    () => {
      let berth: TestBerth
      let server: string
      let browser: Visitor
      let port: string
      beforeAll(async () => {
        berth = await testBerth({ flags: { isolation } })
        server = await berth.server()
        await berth.call('PUT', `/servers/${server}/files`, { path: 'thief.py', content: THIEF })
        browser = await Visitor.of(berth)
        port = new URL(berth.info.base_url).port
      })
      afterAll(() => berth?.[Symbol.asyncDispose]())

      const hasOwnNetwork = async (): Promise<boolean> =>
        (await berth.control('GET', '/health')).body.enforced.network.startsWith('own')

      const steal = (how: string, host = '127.0.0.1', request = 'GET /access', body = '', header = '') => {
        const given = [how, host, port, browser.cookie, request, body, header].map((one) => `'${one}'`)
        return `python3 thief.py ${given.join(' ')}`
      }

      test.each([
        ['as it is', '127.0.0.1', ''],
        ['as it is', '::1', ''],
        ['in flight', '127.0.0.1', ''],
        ['as it is', '127.0.0.1', 'env -i PATH="$PATH" setsid'],
      ])('opens nothing: sent %s to %s %s', async (how, host, prefix) => {
        const { stdout, stderr } = await berth.exec(server, `${prefix} ${steal(how, host)}`)
        expect({ stdout, stderr }).toEqual({ stdout: '403\n', stderr: '' })
        expect((await browser.get('/access')).status).toBe(200)
      })

      test.each(['GET /servers', 'POST /keys', 'GET /_berth/accounts', 'POST /_berth/reset'])(
        'opens neither API, with the token that belongs to it: %s',
        async (request) => {
          const token = `x-berth-csrf: ${await browser.csrf()}`
          for (const host of ['127.0.0.1', '::1']) {
            const { stdout } = await berth.exec(server, steal('as it is', host, request, '', token))
            expect(stdout).toBe('403\n')
          }
        },
      )

      test('opens nothing to a process that nobody is the parent of', async () => {
        const command = `(setsid env -i PATH="$PATH" sh -c 'sleep 0.2; ${steal('as it is').replaceAll("'", '"')} > out' &) ; sleep 0`
        await berth.exec(server, `rm -f out; ${command}`)
        await until(async () => {
          const { stdout } = await berth.exec(server, 'cat out 2>/dev/null')
          return stdout === '403\n'
        }, 'it is refused')
      })

      test('is not said to be in the hands of a server where the browser itself has left the page', async () => {
        const before = berth.log().length
        const request = `GET /access HTTP/1.1\r\nHost: localhost:${port}\r\nCookie: ${browser.cookie}\r\n\r\n`
        for (let left = 0; left < 40; left += 1) {
          const { promise, resolve } = Promise.withResolvers<void>()
          const socket = connect(Number(port), '127.0.0.1', () => socket.end(request, () => socket.destroy()))
          socket.on('close', () => resolve())
          await promise
        }
        // The one of the thief is the last.
        await berth.exec(server, steal('as it is'))
        const accused = () =>
          berth.log().slice(before).split('a process on a server sent the session of a browser').length - 1
        if (!(await hasOwnNetwork())) await until(() => accused() > 0, 'the thief is accused')
        expect(accused()).toBeLessThanOrEqual(1)
      })

      test('changes nothing, also where nobody waits for the answer', async () => {
        const { id } = (await berth.call('POST', '/keys', { label: 'kept' })).body
        const csrf = await browser.csrf()
        const refused = () => berth.log().split('sent the session of a browser').length
        for (const how of ['as it is', 'gone']) {
          const before = refused()
          await berth.exec(server, steal(how, '127.0.0.1', `POST /access/keys/${id}/delete`, `csrf=${csrf}`))
          await until(() => refused() > before, 'it is refused')
        }
        // On the machine's network, the sender of a closed connection can no longer be told, and nobody is accused. It may
        // be told all the same, if the thief has not closed it yet.
        const isUnsure = () =>
          berth.log().includes('a connection that has closed sent the session of a browser')
        await until(async () => {
          if (isUnsure() || (await hasOwnNetwork())) return true
          await berth.exec(
            server,
            steal('gone', '127.0.0.1', `POST /access/keys/${id}/delete`, `csrf=${csrf}`),
          )
          return isUnsure()
        }, 'a closed connection is refused without a name')
        const { body } = await berth.call('GET', '/keys')
        expect(body.keys.map((key: { id: string }) => key.id)).toContain(id)
        // The same form by the browser itself.
        await browser.submit(`/access/keys/${id}/delete`)
        const { body: after } = await berth.call('GET', '/keys')
        expect(after.keys.map((key: { id: string }) => key.id)).not.toContain(id)
      })

      test('changes nothing, also where what sends it is gone at once and a connection of a browser looks alike', async () => {
        const { id } = (await berth.call('POST', '/keys', { label: 'kept' })).body
        const csrf = await browser.csrf()
        const local = String(freePort())
        await berth.call('PUT', `/servers/${server}/files`, { path: 'twin.py', content: TWIN })
        const form = [port, local, browser.cookie, `POST /access/keys/${id}/delete`, `csrf=${csrf}`]
        const given = form.map((one) => `'${one}'`).join(' ')
        const running = berth.exec(server, `python3 twin.py ${given} > twin.log`)
        const logOf = async () => (await berth.exec(server, 'cat twin.log 2>/dev/null')).stdout
        await until(async () => (await logOf()) === 'listens\n', 'it listens')
        if (await hasOwnNetwork()) {
          // No browser of this machine reaches a server's own network, so the server holds the connection itself.
          await berth.call('PUT', `/servers/${server}/files`, { path: 'decoy.py', content: DECOY })
          await berth.exec(server, `python3 decoy.py ${port} ${local}`)
          await running
        } else {
          const decoy = Bun.spawn([python ?? '', '-c', DECOY, port, local], { stdin: 'pipe', stdout: 'pipe' })
          await running
          decoy.kill()
          await decoy.exited
        }
        expect(await logOf()).toMatch(/^listens\n[1-9]\d*\n$/)
        const { body } = await berth.call('GET', '/keys')
        expect(body.keys.map((key: { id: string }) => key.id)).toContain(id)
      })

      test('opens nothing from the port of a connection that was a browser', async () => {
        await berth.call('PUT', `/servers/${server}/files`, { path: 'from-port.py', content: FROM_PORT })
        const given = [port, String(freePort()), browser.cookie]
        for (let round = 0; round < 3; round++) {
          const ours = Bun.spawn([python ?? '', '-c', FROM_PORT, ...given], { stdout: 'pipe' })
          expect(await new Response(ours.stdout).text()).toBe('200\n')
          const command = `python3 from-port.py ${given.map((one) => `'${one}'`).join(' ')}`
          expect(await berth.exec(server, command)).toMatchObject({ stdout: '403\n', stderr: '' })
        }
      })

      test.skipIf(OWN === undefined)(
        'opens nothing by an address of this machine that servers may reach, where a key does as much as elsewhere',
        async () => {
          const flags = { isolation, host: '0.0.0.0', 'outbound-hosts': OWN ?? '' }
          await using berth = await testBerth({ flags })
          const server = await berth.server()
          const { cookie, csrf } = await Visitor.of(berth).then(async (visitor) => ({
            cookie: visitor.cookie,
            csrf: await visitor.csrf(),
          }))
          const ask = async (path: string, ...headers: string[]): Promise<string> => {
            const given = headers.map((header) => `-H '${header}'`).join(' ')
            const url = `http://${OWN}:${new URL(berth.info.base_url).port}${path}`
            return (await berth.exec(server, `curl -s -o out -w '%{http_code}' -m 8 ${given} ${url}`)).stdout
          }
          const session = [`cookie: ${cookie}`, `x-berth-csrf: ${csrf}`]
          expect(await ask('/access', ...session)).toBe('403')
          expect(await ask('/servers', ...session)).toBe('403')
          expect(await ask('/_berth/accounts', ...session)).toBe('403')
          expect(await ask('/servers')).toBe('401')
          expect(await ask('/servers', `authorization: Bearer ${berth.info.api_key}`)).toBe('200')
        },
      )

      test('opens everything to a browser, which is a process of its own', async () => {
        const look =
          'const { status } = await fetch(process.argv[1], { headers: { cookie: process.argv[2] } }); console.log(status)'
        const given = [`${berth.info.base_url}/access`, browser.cookie]
        const other = Bun.spawn([process.execPath, '-e', look, ...given], { stdout: 'pipe' })
        expect(await new Response(other.stdout).text()).toBe('200\n')
        await other.exited
      })
    },
  )
