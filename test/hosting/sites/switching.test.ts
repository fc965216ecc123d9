import { describe, expect, test } from 'bun:test'
import { freePort } from '../../support/ports.ts'
import { until } from '../../support/processes.ts'
import { app, appOn, get, Raw, rawApp, SERVER, testSite } from './support.ts'

const answering = (text: string) => app(() => new Response(text))

describe('while an app starts', () => {
  test('requests wait, with their bodies, and go to it when it is there', async () => {
    await using site = await testSite()
    const posted = fetch(`${site.site.url}a`, { method: 'POST', body: 'x'.repeat(300_000) })
    const got = fetch(`${site.site.url}b`)
    await until(() => site.waiting() === 2, 'both wait')
    // What is under way at the same time is one use of the server.
    expect(site.uses).toEqual({ begun: 1, open: 1 })
    await using backend = app(async (request) => {
      const { pathname } = new URL(request.url)
      return new Response(`${pathname} ${(await request.text()).length}`)
    })
    site.site.setUpstream(backend.upstream)
    expect(await (await posted).text()).toBe('/a 300000')
    expect(await (await got).text()).toBe('/b 0')
  })

  test('they wait so long and no longer: 503, JSON for programs, a page for browsers', async () => {
    await using site = await testSite({ times: { waitMs: 100 } })
    const started = performance.now()
    const [program, browser, head] = await Promise.all([
      fetch(site.site.url),
      fetch(site.site.url, { headers: { accept: 'text/html,application/xhtml+xml;q=0.9,*/*;q=0.8' } }),
      fetch(site.site.url, { method: 'HEAD' }),
    ])
    expect(performance.now() - started).toBeGreaterThan(90)
    for (const { status, headers } of [program, browser, head]) {
      expect(status).toBe(503)
      expect(headers.get('retry-after')).toBe('1')
      expect(headers.get('cache-control')).toBe('no-store')
    }
    expect(await program.json()).toEqual({
      error: 'service_unavailable',
      message: expect.stringContaining('not started in time'),
    })
    const page = await browser.text()
    expect(browser.headers.get('content-type')).toBe('text/html; charset=utf-8')
    expect(page).toContain('not started in time')
    expect(page).not.toMatch(/(?:src|href)=(?!"data:)|@import|url\(/)
  })

  test('a client that goes away while it waits is forgotten', async () => {
    await using site = await testSite()
    {
      using client = await Raw.to(site.port)
      client.send(get('/'))
      await until(() => site.uses.open === 1, 'it waits')
    }
    await until(() => site.uses.open === 0, 'it is forgotten')
    await using backend = await rawApp()
    site.site.setUpstream(backend.upstream)
    using other = await Raw.to(site.port)
    other.send(get('/other'))
    expect(await (await backend.connection()).until('\r\n\r\n')).toStartWith('GET /other ')
    expect(backend.connections).toHaveLength(1)
  })
})

test('where nothing is to come, 503 at once with the reason, escaped on the page', async () => {
  await using site = await testSite({ upstream: { kind: 'down', reason: 'It <sleeps> & "rests".' } })
  const response = await fetch(site.site.url)
  expect(response.status).toBe(503)
  expect(await response.json()).toEqual({ error: 'service_unavailable', message: 'It <sleeps> & "rests".' })
  const page = await (await fetch(site.site.url, { headers: { accept: 'text/html' } })).text()
  expect(page).toContain('It &lt;sleeps&gt; &amp; &quot;rests&quot;.')
})

describe('where the port of an app refuses connections', () => {
  test('requests wait until it takes them again', async () => {
    const port = freePort()
    await using site = await testSite({ upstream: appOn(port) })
    const waiting = fetch(site.site.url, { method: 'POST', body: 'body' })
    await until(() => site.uses.open === 1, 'it waits')
    await using _back = app(async (request) => new Response(await request.text()), { port })
    expect(await (await waiting).text()).toBe('body')
  })

  test('they go elsewhere where the site points elsewhere', async () => {
    await using site = await testSite({
      upstream: appOn(freePort()),
      times: { retryMs: 60_000 },
    })
    const waiting = fetch(site.site.url)
    await until(() => site.uses.open === 1, 'it waits')
    await Bun.sleep(20)
    await using backend = answering('elsewhere')
    site.site.setUpstream(backend.upstream)
    expect(await (await waiting).text()).toBe('elsewhere')
  })

  test('they get 503 when they have waited long enough', async () => {
    await using site = await testSite({
      upstream: appOn(freePort()),
      times: { waitMs: 100, retryMs: 10 },
    })
    const response = await fetch(site.site.url)
    expect(response.status).toBe(503)
    expect(await response.text()).toContain('Nothing listens on 127.0.0.1, port ')
  })
})

describe('a switch', () => {
  test('fails no request under load', async () => {
    await using first = answering('first')
    await using second = answering('second')
    await using site = await testSite(first)
    const answers: string[] = []
    const requests: Promise<void>[] = []
    const ask = async () => {
      const response = await fetch(site.site.url, { method: requests.length % 3 === 0 ? 'POST' : 'GET' })
      answers.push(`${response.status} ${await response.text()}`)
    }
    // 200 requests a second, with a switch every 100 ms.
    for (let tick = 0; tick < 100; tick++) {
      requests.push(ask(), ask())
      if (tick % 10 === 5) site.site.setUpstream({ kind: 'starting' })
      if (tick % 10 === 6) site.site.setUpstream(tick % 20 === 6 ? second.upstream : first.upstream)
      await Bun.sleep(10)
    }
    await Promise.all(requests)
    expect(new Set(answers)).toEqual(new Set(['200 first', '200 second']))
    expect(answers).toHaveLength(200)
  })

  test('takes a kept-alive connection to the new app with its next request', async () => {
    await using first = answering('first')
    await using second = answering('second')
    await using site = await testSite(first)
    using client = await Raw.to(site.port)
    client.send(get('/'))
    expect(await client.until('first')).toStartWith('HTTP/1.1 200')
    site.site.setUpstream(second.upstream)
    client.send(get('/'))
    expect(await client.until('second')).toStartWith('HTTP/1.1 200')
  })

  test('lets what is under way end where it began, and tells when that is', async () => {
    await using first = await rawApp()
    await using second = answering('second')
    await using site = await testSite(first)
    using client = await Raw.to(site.port)
    client.send(get('/'))
    const upstream = await first.connection()
    await upstream.until('\r\n\r\n')
    upstream.send('HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\nhalf')
    await client.until('half')
    site.site.setUpstream(second.upstream)
    let drained = false
    const draining = site.site.drained({ server: SERVER, port: first.port }).then(() => {
      drained = true
    })
    expect(await (await fetch(site.site.url)).text()).toBe('second')
    expect(drained).toBe(false)
    upstream.send('done')
    await client.until('done')
    await draining
    await upstream.end()
    await site.site.drained({ server: SERVER, port: freePort() })
  })

  test('back to a port on which requests are under way counts them still', async () => {
    await using first = await rawApp()
    await using site = await testSite(first)
    using client = await Raw.to(site.port)
    client.send(get('/'))
    await (await first.connection()).until('\r\n\r\n')
    site.site.setUpstream({ kind: 'starting' })
    site.site.setUpstream(first.upstream)
    site.site.setUpstream({ kind: 'starting' })
    let drained = false
    const draining = site.site.drained({ server: SERVER, port: first.port }).then(() => {
      drained = true
    })
    // What is drained already says so before anything else has its turn.
    await new Promise(setImmediate)
    expect(drained).toBe(false)
    ;(await first.connection()).send('HTTP/1.1 204 No Content\r\n\r\n')
    await draining
  })
})

describe('connections to the app', () => {
  test('are used again, and closed soon when they are idle', async () => {
    await using backend = await rawApp((upstream) =>
      upstream.socket.on('data', () => upstream.send('HTTP/1.1 204 No Content\r\n\r\n')),
    )
    // Long enough that on a busy machine no request comes later than that after the one before.
    await using site = await testSite({ ...backend, times: { idleMs: 1_000 } })
    for (let round = 0; round < 5; round++) await fetch(site.site.url)
    expect(backend.connections).toHaveLength(1)
    await (await backend.connection()).end()
    await fetch(site.site.url)
    expect(backend.connections).toHaveLength(2)
  })

  test('that the app closes under a request are replaced, where that may be sent again', async () => {
    let requests = 0
    await using backend = await rawApp((upstream) =>
      upstream.socket.on('data', () => {
        requests += 1
        if (requests === 2) upstream.socket.destroy()
        else upstream.send('HTTP/1.1 204 No Content\r\n\r\n')
      }),
    )
    await using site = await testSite(backend)
    expect((await fetch(site.site.url)).status).toBe(204)
    expect((await fetch(site.site.url)).status).toBe(204)
    expect([requests, backend.connections.length]).toEqual([3, 2])
  })

  test('that end with the app are not replaced: its next process gets no request that may have ended the one before', async () => {
    for (const isNoted of [false, true]) {
      let requests = 0
      await using backend = await rawApp((upstream) =>
        upstream.socket.on('data', () => {
          requests += 1
          if (requests !== 2) return upstream.send('HTTP/1.1 204 No Content\r\n\r\n')
          if (isNoted) site.site.setUpstream({ kind: 'starting', hasCrashed: true })
          else backend.refuse()
          upstream.socket.destroy()
        }),
      )
      await using site = await testSite({ ...backend, times: { retryMs: 10, waitMs: 500 } })
      await fetch(site.site.url)
      expect((await fetch(site.site.url)).status).toBe(502)
      expect(requests).toBe(2)
    }
  })

  test('that end with the app receive how it crashed, which is known a moment later', async () => {
    let crash: string | null = null
    await using backend = await rawApp((upstream) =>
      upstream.socket.once('data', async () => {
        upstream.socket.destroy()
        await Bun.sleep(20)
        crash = 'it ended with exit code 7.'
        site.site.setUpstream({ kind: 'starting', hasCrashed: true })
      }),
    )
    await using site = await testSite({ ...backend, times: { crashMs: 60_000 }, crash: () => crash })
    const responses = await Promise.all([
      fetch(site.site.url),
      fetch(site.site.url, { method: 'POST', body: 'a' }),
    ])
    const message = 'The app crashed before its response was complete: it ended with exit code 7.'
    for (const response of responses) {
      expect(response.status).toBe(502)
      expect(await response.json()).toEqual({ error: 'compute_backend_error', message })
    }
  })

  test('that end without a crash are not held up for long, nor at all if their client goes', async () => {
    await using backend = await rawApp((upstream) =>
      upstream.socket.once('data', () => upstream.socket.end('HTTP/1.1 200 OK\r\nContent-')),
    )
    await using site = await testSite({ ...backend, times: { crashMs: 50 } })
    const response = await fetch(site.site.url)
    expect(response.status).toBe(502)
    expect(await response.text()).toContain('it closed the connection before its response was complete')

    await using other = await testSite({ ...backend, times: { crashMs: 60_000 } })
    using client = await Raw.to(other.port)
    client.send(get('/'))
    await (await backend.connection(1)).end()
    client.socket.destroy()
    await until(() => other.uses.begun === 1 && other.uses.open === 0, 'it is forgotten')
  })

  test('that end because the app is replaced are', async () => {
    let requests = 0
    await using backend = await rawApp((upstream) =>
      upstream.socket.on('data', () => {
        requests += 1
        if (requests !== 2) return upstream.send('HTTP/1.1 204 No Content\r\n\r\n')
        site.site.setUpstream({ kind: 'starting' })
        upstream.socket.on('close', () => site.site.setUpstream(backend.upstream)).destroy()
      }),
    )
    await using site = await testSite(backend)
    await fetch(site.site.url)
    expect((await fetch(site.site.url)).status).toBe(204)
    expect(requests).toBe(3)
  })

  test('that end with a request that must arrive once are not replaced, however they end', async () => {
    for (const end of ['end', 'destroy', 'resetAndDestroy'] as const) {
      let requests = 0
      await using backend = await rawApp((upstream) =>
        upstream.socket.on('data', () => {
          requests += 1
          upstream.socket[end]()
        }),
      )
      await using site = await testSite({ ...backend, times: { crashMs: 1 } })
      expect((await fetch(site.site.url, { method: 'POST', body: 'once' })).status).toBe(502)
      expect(requests).toBe(1)
    }
  })

  test('that may be closing are not used for what may be sent once only', async () => {
    await using backend = await rawApp((upstream) =>
      upstream.socket.on('data', () => upstream.send('HTTP/1.1 204 No Content\r\n\r\n')),
    )
    await using site = await testSite(backend)
    await fetch(site.site.url)
    expect((await fetch(site.site.url, { method: 'POST', body: 'once' })).status).toBe(204)
    expect(backend.connections).toHaveLength(2)
  })
})
