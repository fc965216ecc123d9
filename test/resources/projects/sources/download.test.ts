import { describe, expect, test } from 'bun:test'
import type { IncomingHttpHeaders, ServerResponse } from 'node:http'
import { createServer as createHttp } from 'node:http'
import { createServer as createHttps } from 'node:https'
import type { AddressInfo } from 'node:net'
import type { SourcesOptions } from '../../../../src/resources/projects/sources/sources.ts'
import { makeAuthority } from '../../../support/authority.ts'
import { tgz, zip } from './archives.ts'
import { sentenceOf, World } from './world.ts'

const authority = makeAuthority()
/** Names that are in no name service: only who connects to the address that was checked gets there. */
const tls = authority.issue('DNS:files.test,DNS:other.test,IP:127.0.0.1')
const ARCHIVE = tgz({ name: 'app/a.txt', content: 'one' })

interface FileServer extends AsyncDisposable {
  readonly port: number
  readonly asked: { url: string; headers: IncomingHttpHeaders }[]
}

/** A server on loopback with given responses. */
async function fileServer(
  answer: (response: ServerResponse, url: string) => void,
  { plain = false } = {},
): Promise<FileServer> {
  const asked: FileServer['asked'] = []
  const handle = (
    request: { url?: string | undefined; headers: IncomingHttpHeaders },
    response: ServerResponse,
  ) => {
    asked.push({ url: request.url ?? '', headers: request.headers })
    answer(response, request.url ?? '')
  }
  const server = plain ? createHttp(handle) : createHttps(tls, handle)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    port: (server.address() as AddressInfo).port,
    asked,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

const localWorld = (options: Partial<SourcesOptions> = {}) =>
  new World({ allowLocal: true, ca: authority.ca, resolve: async () => ['127.0.0.1'], ...options })

const fetch = (world: World, url: string, signal?: AbortSignal) =>
  world.fetch({ type: 'archive', url }, signal ? { signal } : {})

describe('an archive from a URL', () => {
  test('is fetched from the address that was checked, whatever its name and type say', async () => {
    await using world = localWorld()
    for (const bytes of [ARCHIVE, zip({ name: 'app/a.txt', content: 'one' })]) {
      await using server = await fileServer((response) =>
        response.writeHead(200, { 'content-type': 'text/html' }).end(bytes),
      )
      await fetch(world, `https://files.test:${server.port}/page.html?version=1`)
      expect(world.tree()).toEqual(['a.txt'])
      expect(server.asked.map(({ url, headers }) => [url, headers.host])).toEqual([
        ['/page.html?version=1', `files.test:${server.port}`],
      ])
    }
    expect(world.lines).toContain('Fetching the archive.')
  })

  test('follows redirects, a few, to hosts that are allowed; credentials stay with their own', async () => {
    await using world = localWorld()
    await using other = await fileServer((response) => response.end(ARCHIVE))
    await using server = await fileServer((response, url) => {
      const location = url === '/a' ? '/b' : `https://other.test:${other.port}/c`
      response.writeHead(302, { location }).end()
    })
    await fetch(world, `https://user:se%63ret@files.test:${server.port}/a`)
    expect(world.tree()).toEqual(['a.txt'])
    const basic = `Basic ${Buffer.from('user:secret').toString('base64')}`
    expect(server.asked.map(({ headers }) => headers.authorization)).toEqual([basic, basic])
    expect(other.asked.map(({ headers }) => headers.authorization)).toEqual([undefined])

    await using circle = await fileServer((response) => response.writeHead(301, { location: '/' }).end())
    expect(await sentenceOf(fetch(world, `https://files.test:${circle.port}/`))).toContain(
      'redirected more than 5 times',
    )
    expect(circle.asked).toHaveLength(6)
  })

  test.each([
    ['http://93.184.215.14/a', 'https'],
    ['file:///etc/passwd', 'https'],
    ['https://169.254.169.254/latest', 'linkLocal'],
    ['https://', 'https'],
    ['data:,x', 'https'],
  ])('that redirects to %s is refused', async (location, why) => {
    await using world = localWorld()
    await using server = await fileServer((response) => response.writeHead(307, { location }).end())
    expect(await sentenceOf(fetch(world, `https://files.test:${server.port}/`))).toContain(why)
    world.expectNothing()
  })

  test('is refused where any address of its name is private, and nothing is asked', async () => {
    await using server = await fileServer((response) => response.end(ARCHIVE))
    for (const addresses of [
      ['127.0.0.1'],
      ['93.184.215.14', '192.168.1.1'],
      ['::ffff:10.0.0.1'],
      ['fe80::1'],
      [],
    ]) {
      await using world = localWorld({ allowLocal: false, resolve: async () => addresses })
      await sentenceOf(fetch(world, `https://files.test:${server.port}/`))
      world.expectNothing()
    }
    expect(server.asked).toEqual([])
  })

  test('goes over http only to this machine, and only where that is allowed', async () => {
    await using server = await fileServer((response) => response.end(ARCHIVE), { plain: true })
    await using world = localWorld()
    await fetch(world, `http://127.0.0.1:${server.port}/`)
    expect(world.tree()).toEqual(['a.txt'])
    await using strict = localWorld({ allowLocal: false })
    expect(await sentenceOf(fetch(strict, `http://127.0.0.1:${server.port}/`))).toContain('https')
    await using far = localWorld({ resolve: async () => ['93.184.215.14'] })
    expect(await sentenceOf(fetch(far, 'http://far.test/'))).toContain('https only')
    expect(server.asked).toHaveLength(1)
  })

  test('of a server that nobody trusts is not read', async () => {
    await using world = localWorld({ ca: makeAuthority().ca })
    await using server = await fileServer((response) => response.end(ARCHIVE))
    await sentenceOf(fetch(world, `https://files.test:${server.port}/`))
    expect(server.asked).toEqual([])
    world.expectNothing()
  })

  test('tries the next address where one takes no connection', async () => {
    await using server = await fileServer((response) => response.end(ARCHIVE))
    await using world = localWorld({ resolve: async () => ['127.0.0.2', '127.0.0.1'] })
    await fetch(world, `https://files.test:${server.port}/`)
    expect(world.tree()).toEqual(['a.txt'])
  })

  test('over the limit is given up, said or not', async () => {
    await using world = localWorld({ limits: { archiveBytes: 1024 * 1024 } })
    const large = Buffer.alloc(2 * 1024 * 1024)
    await using said = await fileServer((response) =>
      response.writeHead(200, { 'content-length': large.length }).end(large),
    )
    await using unsaid = await fileServer((response) => {
      response.writeHead(200)
      const more = () => response.destroyed || response.write(Buffer.alloc(65_536), () => setImmediate(more))
      more()
    })
    for (const server of [said, unsaid])
      expect(await sentenceOf(fetch(world, `https://files.test:${server.port}/`))).toContain(
        'more than 1 MiB',
      )
    world.expectNothing()
  })

  test('that is cut short, refused or not an archive is reported as such', async () => {
    await using world = localWorld()
    await using cut = await fileServer((response) => {
      response.writeHead(200, { 'content-length': ARCHIVE.length + 10 })
      response.write(ARCHIVE, () => response.destroy())
    })
    expect(await sentenceOf(fetch(world, `https://files.test:${cut.port}/`))).toContain('to its end')
    await using refusing = await fileServer((response) => response.writeHead(404).end())
    expect(await sentenceOf(fetch(world, `https://files.test:${refusing.port}/x`))).toContain(
      'answered with 404',
    )
    await using page = await fileServer((response) => response.end('<!DOCTYPE html>'))
    expect(await sentenceOf(fetch(world, `https://files.test:${page.port}/`))).toContain('a web page')
    world.expectNothing()
  })

  test('shows neither its credentials nor its query in what is reported', async () => {
    await using world = localWorld()
    await using server = await fileServer((response) => response.writeHead(403).end())
    const url = (port: number) => `https://user:hidden-1@files.test:${port}/a?token=hidden-2`
    const refused = await sentenceOf(fetch(world, url(server.port)))
    const unreached = await sentenceOf(fetch(world, url(1)))
    expect(refused).toContain(`https://files.test:${server.port}/a answered with 403`)
    expect(`${refused} ${unreached} ${world.lines.join()}`).not.toContain('hidden')
  })

  test('ends when it is cancelled or takes too long', async () => {
    await using server = await fileServer((response) => void response.writeHead(200).write('PK'))
    await using world = localWorld({ limits: { timeoutMs: 500 } })
    expect(await sentenceOf(fetch(world, `https://files.test:${server.port}/`))).toContain(
      'which is the limit',
    )
    await using patient = localWorld()
    const cancel = new AbortController()
    const fetching = fetch(patient, `https://files.test:${server.port}/`, cancel.signal)
    const { promise: asked, resolve } = Promise.withResolvers<void>()
    const look = () => (server.asked.length > 1 ? resolve() : setImmediate(look))
    look()
    await asked
    cancel.abort(new Error('no longer wanted'))
    await expect(fetching).rejects.toThrow('no longer wanted')
    await using deaf = localWorld({ limits: { timeoutMs: 200 }, resolve: () => new Promise(() => {}) })
    expect(await sentenceOf(fetch(deaf, 'https://files.test/'))).toContain('which is the limit')
    world.expectNothing()
    patient.expectNothing()
  })
})
