import { expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { berthForTests } from '../support/berth.ts'

/* Files as bytes: GET and PUT /servers/{serverId}/files/content. */

const berth = await berthForTests()
const server = await berth.server()

const send = (path: string, init: RequestInit = {}, id = server) =>
  fetch(`${berth.info.base_url}/servers/${id}/files/content?path=${encodeURIComponent(path)}`, {
    ...init,
    headers: { authorization: `Bearer ${berth.info.api_key}`, ...init.headers },
  })
const upload = (path: string, body: RequestInit['body']) => send(path, { method: 'PUT', body })
const bytesOf = async (response: Response) => Buffer.from(await response.arrayBuffer())

/** More than a body of JSON may have, with every byte. */
const LARGE = Buffer.alloc(40 * 1024 * 1024, Buffer.from(Array.from({ length: 256 }, (_, byte) => byte)))

test('a file larger than a JSON body is the same after upload and download, on a server that runs or sleeps', async () => {
  const written = await upload('deep/large.bin', LARGE)
  expect([written.status, await written.json()]).toEqual([201, { path: 'deep/large.bin', written: true }])
  const read = await send('deep/large.bin')
  expect([read.status, read.headers.get('content-type')]).toEqual([200, 'application/octet-stream'])
  expect((await bytesOf(read)).equals(LARGE)).toBe(true)
  await berth.call('POST', `/servers/${server}/actions`, { action: 'stop' })
  expect((await bytesOf(await send('deep/large.bin'))).equals(LARGE)).toBe(true)
  expect((await upload('asleep.txt', 'hello')).status).toBe(201)
  expect(await (await send('asleep.txt')).text()).toBe('hello')
})

test('a body of unknown length is written, and an empty one makes an empty file', async () => {
  const parts = new ReadableStream({
    start(controller) {
      for (const part of ['a', 'b', 'c']) controller.enqueue(new TextEncoder().encode(part))
      controller.close()
    },
  })
  expect((await upload('parts.txt', parts)).status).toBe(201)
  expect(await (await send('parts.txt')).text()).toBe('abc')
  expect((await send('empty', { method: 'PUT' })).status).toBe(201)
  expect(await (await send('empty')).text()).toBe('')
})

test('Range gets a part, several parts or another unit the whole, and one behind the end 416 with the size', async () => {
  await upload('ten.txt', '0123456789')
  const part = async (range: string) => {
    const response = await send('ten.txt', { headers: { range } })
    return [response.status, response.headers.get('content-range'), await response.text()]
  }
  expect(await part('bytes=2-4')).toEqual([206, 'bytes 2-4/10', '234'])
  expect(await part('bytes=7-')).toEqual([206, 'bytes 7-9/10', '789'])
  expect(await part('bytes=-3')).toEqual([206, 'bytes 7-9/10', '789'])
  expect(await part('bytes=0-1,3-4')).toEqual([200, null, '0123456789'])
  expect(await part('lines=0-1')).toEqual([200, null, '0123456789'])
  expect(await part('bytes=10-')).toEqual([
    416,
    'bytes */10',
    JSON.stringify({
      error: 'bad_request',
      message: '"range" in the headers: it lies behind the end of the file.',
    }),
  ])
})

test('a file that one read returns is sent with its length, and a larger one in chunks', async () => {
  await upload('ten.txt', '0123456789')
  await upload('chunks.bin', LARGE.subarray(0, 1024 * 1024))
  const length = async (path: string, range = 'none') => {
    const response = await send(path, { headers: { range } })
    return [response.headers.get('content-length'), (await bytesOf(response)).length]
  }
  expect(await length('ten.txt')).toEqual(['10', 10])
  expect(await length('chunks.bin', 'bytes=1000-1999')).toEqual(['1000', 1000])
  expect(await length('chunks.bin')).toEqual([null, 1024 * 1024])
})

/** Returns the bytes that berth has read so far, of files and pipes. */
const bytesRead = (): number =>
  Number(/^rchar: (\d+)$/m.exec(readFileSync(`/proc/${berth.info.pid}/io`, 'utf8'))?.[1])

test('HEAD has the size and no body, and reads nothing', async () => {
  await berth.call('POST', `/servers/${server}/exec`, { command: 'truncate -s 1G holes' })
  const before = bytesRead()
  const response = await send('holes', { method: 'HEAD' })
  expect([response.status, response.headers.get('content-length'), await response.text()]).toEqual([
    200,
    String(2 ** 30),
    '',
  ])
  const part = await send('holes', { method: 'HEAD', headers: { range: 'bytes=5-9' } })
  expect([part.status, part.headers.get('content-length')]).toEqual([206, '5'])
  expect(bytesRead() - before).toBeLessThan(2 ** 28)
  await berth.call('POST', `/servers/${server}/exec`, { command: 'rm holes' })
})

test('stays in the workspace, through links too', async () => {
  await berth.call('POST', `/servers/${server}/exec`, { command: 'ln -sfn / out; mkdir -p dir' })
  for (const path of ['../x', '/etc/passwd', 'out/etc/passwd']) {
    expect([path, (await send(path)).status]).toEqual([path, 404])
    expect([path, (await upload(path, 'x')).status]).toEqual([path, 400])
  }
  expect((await send('dir')).status).toBe(404)
  expect((await upload('dir', 'x')).status).toBe(400)
  expect((await send('none')).status).toBe(404)
})

test('an upload that breaks off changes nothing', async () => {
  await upload('kept.txt', 'before')
  const cut = new AbortController()
  const body = new ReadableStream({
    async start(controller) {
      controller.enqueue(new Uint8Array(1024 * 1024))
      await Bun.sleep(50)
      cut.abort()
    },
  })
  await expect(send('kept.txt', { method: 'PUT', body, signal: cut.signal })).rejects.toThrow()
  expect(await (await send('kept.txt')).text()).toBe('before')
})

test('an upload over the storage is refused', async () => {
  const account = (await berth.control('POST', '/accounts', { plan: { storage_gb: { small: 0.001 } } })).body
  const authorization = `Bearer ${account.api_key}`
  const { id } = (await berth.call('POST', '/servers', {}, { authorization })).body
  const response = await send('large', { method: 'PUT', body: LARGE, headers: { authorization } }, id)
  expect([response.status, await response.text()]).toEqual([
    400,
    expect.stringContaining("The server's storage is full"),
  ])
})
