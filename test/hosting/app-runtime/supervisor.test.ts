import { describe, expect, test } from 'bun:test'
import { dialLoopback } from '../../../src/compute/local/dial.ts'
import { type DialHandlers, DialRefused, type LoopbackHost } from '../../../src/compute/sandbox.ts'
import { AppError, AppFailure } from '../../../src/hosting/app-runtime/plan.ts'
import { AppPorts } from '../../../src/hosting/app-runtime/ports.ts'
import { run, until } from '../../compute/bench.ts'
import { fetchInside } from '../../compute/fetch-inside.ts'
import { planOf, World } from './world.ts'

/** A server that shares this machine's network. */
const SHARED = { network: 'shared' as const, dial: dialLoopback }

/** Answers with the word in WORD; ends as the path says. */
const SERVER = `
const { WORD = 'none', PORT, HOST } = process.env
console.log('up', WORD)
Bun.serve({ port: Number(PORT), hostname: HOST, fetch(request) {
  const { pathname } = new URL(request.url)
  if (pathname === '/crash') setTimeout(() => process.exit(3), 0)
  if (pathname === '/env') return Response.json(process.env)
  if (pathname === '/pid') return new Response(String(process.pid))
  if (pathname === '/bad') return new Response('no', { status: 500 })
  return new Response(WORD)
} })
`
const RUN = 'bun server.js'

const serverIn = async (world: World) => {
  await world.write('app', { 'server.js': SERVER })
  return await world.supervise('app')
}

const noDrain = (): Promise<void> => Promise.resolve()

describe('an app', () => {
  test('is started with PORT, HOST, its variables over the plan’s defaults, and answers at once', async () => {
    await using world = await World.open()
    const app = await serverIn(world)
    const wanted = { required: false, description: null }
    const env = {
      WORD: { ...wanted, default: 'x' },
      MODE: { ...wanted, default: 'fast' },
      GONE: { ...wanted, default: null },
    }
    const began = performance.now()
    await app.supervisor.start(planOf(RUN, { env }), { WORD: 'hello', PORT: '1', HOST: '0.0.0.0' })
    expect(performance.now() - began).toBeLessThan(9000)
    expect(app.states).toEqual([{ kind: 'starting' }, { kind: 'healthy', host: '127.0.0.1', port: app.port }])
    expect(await app.get()).toBe('hello')
    const seen = JSON.parse(await app.get('/env'))
    expect(seen).toMatchObject({
      HOST: '127.0.0.1',
      PORT: String(app.port),
      MODE: 'fast',
      NODE_ENV: 'production',
    })
    expect(seen).not.toHaveProperty('GONE')
    await app.supervisor.stop()
    expect(app.kinds).toEqual(['starting', 'healthy', 'stopped'])
    expect(await world.bench.commands()).toEqual([])
  })

  test('that ignores PORT is found where it listens', async () => {
    await using world = await World.open()
    const app = await world.supervise('')
    await app.supervisor.start(
      planOf(`bun -e 'Bun.serve({ port: 0, fetch: () => new Response("own way") })'`),
      {},
    )
    expect(await app.get()).toBe('own way')
    expect(app.port).not.toBe(0)
  })

  test('that listens on ::1 alone is found there', async () => {
    await using world = await World.open()
    const app = await world.supervise('')
    const command = `bun -e 'Bun.serve({ port: process.env.PORT, hostname: "::1", fetch: () => new Response("six") })'`
    await app.supervisor.start(planOf(command), {})
    expect(app.supervisor.state).toMatchObject({ kind: 'healthy', host: '::1' })
  })

  test('is healthy with any answer under 500, a redirect too, which is not followed', async () => {
    await using world = await World.open()
    const app = await world.supervise('')
    const command = `bun -e 'let n = 0; Bun.serve({ port: process.env.PORT, fetch(r) {
      console.log(new URL(r.url).pathname)
      return n++ < 2 ? new Response("", { status: 503 }) : Response.redirect("/elsewhere", 302) } })'`
    await app.supervisor.start(planOf(command, { health: '/healthz' }), {})
    await app.supervisor.stop()
    expect(await app.lines('app')).toEqual(['/healthz', '/healthz', '/healthz'])
  })

  test('that answers slowly, or closes connections at first, is waited for', async () => {
    await using world = await World.open()
    const app = await world.supervise('')
    const command = `bun -e 'let n = 0; Bun.listen({ port: Number(process.env.PORT), hostname: "127.0.0.1", socket: {
      open(s) { if (n++ < 2) s.end() },
      data(s) { setTimeout(() => s.write("HTTP/1.1 103 Early Hints\\r\\n\\r\\nHTTP/1.1 20"), 100); setTimeout(() => s.write("4 No Content\\r\\n\\r\\n"), 700) } } })'`
    await app.supervisor.start(planOf(command), {})
    expect(app.supervisor.state.kind).toBe('healthy')
  })

  test('that ends before it answers fails at once, with the last 50 lines', async () => {
    await using world = await World.open()
    const app = await world.supervise('')
    const began = performance.now()
    const error = await app.supervisor
      .start(planOf('seq 1 80; echo why >&2; exit 4'), {})
      .catch((error) => error)
    expect(performance.now() - began).toBeLessThan(9000)
    expect(error).toBeInstanceOf(AppFailure)
    expect(error.summary).toBe('The app did not start: it ended with exit code 4.')
    expect(error.log.length).toBe(50)
    expect(error.log.at(-1)).toBe('why')
    expect(error.message).toContain('\n80\nwhy')
    expect(app.supervisor.state).toMatchObject({ kind: 'given_up', reason: error.summary })
  })

  test.each([
    [
      'does not listen',
      'sleep 300',
      /did not listen on a port within 3 s\..*variable PORT.*If it is a worker, .*"kind": "worker"/,
    ],
    [
      'answers with 500',
      `bun -e 'Bun.serve({ port: process.env.PORT, fetch: () => new Response("", { status: 500 }) })'`,
      /responds to GET \/ with status 500\. Its log says why.* under 500 within 3 s/,
    ],
    [
      'answers with an error page of Django',
      `bun -e 'Bun.serve({ port: process.env.PORT, fetch: () => new Response("<h1>Server Error (500)</h1>", { status: 500 }) })'`,
      /responds to GET \/ with status 500\. Django prints no traceback while DEBUG is False/,
    ],
    [
      'says nothing of HTTP',
      `bun -e 'Bun.listen({ port: Number(process.env.PORT), hostname: "127.0.0.1", socket: { data(s) { s.write("what?\\r\\n\\r\\n") } } })'`,
      /listens on port \d+ but sent no HTTP response to GET \//,
    ],
  ])('that %s in time is ended, and the error says so', async (_, command, said) => {
    await using world = await World.open()
    const app = await world.supervise('', { limitMs: 3_000 })
    const error = await app.supervisor.start(planOf(command), {}).catch((error) => error)
    expect(error).toBeInstanceOf(AppFailure)
    expect(error.message).toMatch(said)
    expect(await world.bench.commands()).toEqual([])
  })

  test('whose health page alone responds with 500 is distinguished from one that always does', async () => {
    await using world = await World.open()
    const app = await world.supervise('', { limitMs: 1_000 })
    const command = `bun -e 'Bun.serve({ port: process.env.PORT, fetch: ({ url }) => {
      console.log("Traceback of " + new URL(url).pathname)
      return new Response("", { status: url.endsWith("/up") ? 503 : 200 }) } })'`
    const plan = { ...planOf(command), health: '/up' }
    const error = await app.supervisor.start(plan, {}).catch((error) => error)
    expect(error.summary).toMatch(/GET \/up with status 503\. .* GET \/ has status 200\. .*"health"/)
    expect(error.log).toContain('Traceback of /up')
  })

  test('that goes on answering with 500 is asked less often, and the log says since when', async () => {
    await using world = await World.open()
    const app = await world.supervise('', { limitMs: 3_000 })
    const command = `bun -e 'Bun.serve({ port: process.env.PORT, fetch() {
      console.log("asked"); return new Response("", { status: 503 }) } })'`
    await app.supervisor.start(planOf(command), {}).catch(() => {})
    expect((await app.lines('app')).length).toBeLessThan(10)
    const told = (await app.lines('berth')).filter((line) => line.includes('503 since'))
    expect(told).toEqual([
      expect.stringMatching(/^The app answers GET \/ on port \d+ with status 503 since \d{4}-.*Z\. /),
    ])
  })

  test('that answers elsewhere is reached at PORT as soon as it answers there too', async () => {
    await using world = await World.open()
    await world.write('app', {
      'server.js': `
const serve = (port, text) => Bun.serve({ port, hostname: '127.0.0.1', fetch: () => new Response(text) })
serve(0, 'elsewhere')
while (!(await Bun.file('go').exists())) await Bun.sleep(20)
serve(Number(process.env.PORT), 'at PORT')`,
    })
    const app = await world.supervise('app')
    await app.supervisor.start(planOf(RUN), {})
    expect(await app.get()).toBe('elsewhere')
    await world.write('app', { go: '' })
    await until('the app at PORT', async () => (await app.get()) === 'at PORT')
    expect(app.kinds).toEqual(['starting', 'healthy', 'healthy'])
    // Its next version can start beside it.
    await app.supervisor.replace(planOf(RUN), {}, noDrain)
    expect(app.kinds.slice(3)).toEqual(['healthy'])
  })

  test('whose other port handles no errors of its connections is not ended by being asked', async () => {
    await using world = await World.open()
    await world.write('app', {
      'server.js': `
require('net').createServer((socket) => {
  socket.on('data', () => console.log('asked'))
  socket.on('error', (error) => { console.log(error.code); process.exit(7) })
}).listen(0)
while (!(await Bun.file('go').exists())) await Bun.sleep(20)
Bun.serve({ port: Number(process.env.PORT), fetch: () => new Response('up') })`,
    })
    const app = await world.supervise('app')
    const started = app.supervisor.start(planOf(RUN), {})
    await until('the second request', async () => (await app.lines('app')).length > 1)
    await world.write('app', { go: '' })
    await started
    expect(await app.get()).toBe('up')
    expect(new Set(await app.lines('app'))).toEqual(new Set(['asked']))
  })

  test('whose command does not exist says so', async () => {
    await using world = await World.open()
    const app = await world.supervise('')
    expect(app.supervisor.start(planOf('no-such-thing'), {})).rejects.toThrow('its command was not found')
    await app.becomes('given_up')
  })
})

describe('a crash', () => {
  test('starts the app again, on a port where it answers, after growing delays by the clock', async () => {
    await using world = await World.open()
    const app = await serverIn(world)
    await app.supervisor.start(planOf(RUN), { WORD: 'still' })
    for (const [index, delayMs] of [1000, 2000, 4000].entries()) {
      await app.get('/crash')
      const state = await app.becomes('restarting')
      expect(state).toMatchObject({ reason: 'it ended with exit code 3.', delayMs, attempt: index + 1 })
      const since = world.clock.now()
      expect(app.supervisor.crash).toEqual({
        reason: 'it ended with exit code 3.',
        exitCode: 3,
        since,
        restart: { at: since + delayMs, attempt: index + 1 },
      })
      await world.clock.advance(delayMs - 1)
      expect(app.supervisor.state.kind).toBe('restarting')
      await world.clock.advance(1)
      expect(await app.get()).toBe('still')
      expect(app.supervisor.crash).toBeNull()
    }
  })

  test('too often in 5 minutes makes it give up; a new start tries again', async () => {
    await using world = await World.open()
    const app = await serverIn(world)
    await app.supervisor.start(planOf(RUN), {})
    for (let n = 0; n < 5; n += 1) {
      await app.get('/crash')
      await app.becomes('restarting')
      await world.clock.advance(16_000)
      await app.becomes('healthy')
    }
    await app.get('/crash')
    const { reason } = (await app.becomes('given_up')) as { reason: string }
    expect(reason).toContain('crashed again after 5 restarts in 5 minutes: it ended with exit code 3.')
    await app.supervisor.start(planOf(RUN), { WORD: 'again' })
    expect(await app.get()).toBe('again')
  })

  test('is forgotten after 5 minutes', async () => {
    await using world = await World.open()
    const app = await serverIn(world)
    await app.supervisor.start(planOf(RUN), {})
    for (let n = 0; n < 7; n += 1) {
      await app.get('/crash')
      expect(await app.becomes('restarting')).toMatchObject({ delayMs: 1000 })
      await world.clock.advance(301_000)
      await app.becomes('healthy')
    }
  })

  test('while it restarts counts too', async () => {
    await using world = await World.open()
    await world.write('app', {
      'run.sh': 'if [ -e broken ]; then echo broken; exit 1; fi; exec bun server.js',
      'server.js': SERVER,
    })
    const app = await world.supervise('app')
    await app.supervisor.start(planOf('sh run.sh'), {})
    await world.write('app', { broken: '' })
    const since = world.clock.now()
    await app.get('/crash')
    await app.becomes('restarting')
    await world.clock.advance(60_000)
    await app.becomes('given_up')
    // The time is that of the last response, the cause that of the last end.
    const crash = { reason: 'it ended with exit code 1.', exitCode: 1, since, restart: null }
    expect(app.supervisor.crash).toEqual(crash)
    const told = (await app.lines('berth')).filter((line) => line.includes('again'))
    expect(told[1]).toBe(
      'The app did not start: it ended with exit code 1. It is started again in 2 s (2 of 5).',
    )
    expect(told.at(-1)).toBe(
      'The app crashed again after 5 restarts in 5 minutes: it ended with exit code 1.',
    )
    expect(app.kinds.filter((kind) => kind === 'restarting').length).toBe(5)
    expect(await app.lines('app')).toEqual(['up none', ...Array(5).fill('broken')])
  })

  test('takes what the app left in the background along', async () => {
    await using world = await World.open()
    const app = await serverIn(world)
    await app.supervisor.start(planOf(`setsid -f sleep 300; sleep 300 & ${RUN}`), {})
    await app.get('/crash')
    await app.becomes('restarting')
    expect(await world.bench.commands()).toEqual([])
  })
})

describe('another version', () => {
  test('takes over only when it answers, and the old one goes when its callers are served', async () => {
    await using world = await World.open()
    const app = await serverIn(world)
    await app.supervisor.start(planOf(RUN), { WORD: 'one' })
    const oldPort = app.port
    const served = Promise.withResolvers<void>()
    const asked: number[] = []
    await app.supervisor.replace(planOf(RUN), { WORD: 'two' }, (port) => {
      asked.push(port)
      return served.promise
    })
    expect(await app.get()).toBe('two')
    expect(app.port).not.toBe(oldPort)
    expect(asked).toEqual([oldPort])
    expect(await fetchInside(world.sandbox, oldPort)).toBe('one')
    served.resolve()
    await until('the old one to go', () =>
      fetchInside(world.sandbox, oldPort).then(
        () => false,
        () => true,
      ),
    )
    expect(app.kinds).toEqual(['starting', 'healthy', 'healthy'])
  })

  test.each([
    'error: script "start" was terminated by signal SIGTERM (Polite quit request)',
    'npm error signal SIGTERM',
  ])('leaves nothing in the log that looks like a crash of the old one: %s', async (line) => {
    await using world = await World.open()
    const app = await serverIn(world)
    const script = `trap "echo '${line.replaceAll('"', '\\"')}' >&2; echo bye; exit 143" TERM; ${RUN} & wait`
    await app.supervisor.start(planOf(script), {})
    await app.supervisor.replace(planOf(RUN), {}, noDrain)
    await until('its end', async () => (await app.lines('berth')).includes('The version before was ended.'))
    const lines = await app.lines('app')
    expect(lines).toContain('bye')
    expect(lines).not.toContain(line)
  })

  test('does not wait for callers without end', async () => {
    await using world = await World.open()
    await world.write('app', { 'server.js': SERVER })
    const app = await world.supervise('app', { drainMs: 100 })
    await app.supervisor.start(planOf(RUN), {})
    const oldPort = app.port
    await app.supervisor.replace(planOf(RUN), {}, () => new Promise(() => {}))
    await until('the old one to go', () =>
      fetchInside(world.sandbox, oldPort).then(
        () => false,
        () => true,
      ),
    )
  })

  test('that does not come up leaves the old one as it is', async () => {
    await using world = await World.open()
    const app = await serverIn(world)
    await app.supervisor.start(planOf(RUN), { WORD: 'one' })
    const pid = await app.get('/pid')
    const replaced = app.supervisor.replace(planOf('echo oh no; exit 1'), {}, noDrain)
    expect(replaced).rejects.toThrow('exit code 1. The end of its log:\noh no')
    await replaced.catch(() => {})
    expect(app.kinds).toEqual(['starting', 'healthy'])
    expect(await app.get('/pid')).toBe(pid)
    await app.get('/crash')
    await app.becomes('restarting')
    await world.clock.advance(1000)
    expect(await app.get()).toBe('one')
  })

  test('that does not come up while the old one crashes has the old one started again', async () => {
    await using world = await World.open()
    const app = await serverIn(world)
    await app.supervisor.start(planOf(RUN), { WORD: 'one' })
    const replaced = app.supervisor.replace(
      planOf('until [ -e go ]; do sleep 0.02; done; exit 1'),
      {},
      noDrain,
    )
    replaced.catch(() => {})
    await app.get('/crash')
    await app.becomes('starting')
    await world.write('app', { go: '' })
    await app.becomes('restarting')
    await world.clock.advance(1000)
    expect(await app.get()).toBe('one')
  })

  test('with a port of its own is started when the old one is gone', async () => {
    await using world = await World.open()
    const app = await serverIn(world)
    const free = await world.ports.reserve(SHARED)
    const { port } = free
    free.release()
    const fixed = await serverIn(world)
    await fixed.supervisor.start(planOf(RUN, {}, port), { WORD: 'one' })
    expect(fixed.port).toBe(port)
    await fixed.supervisor.replace(planOf(RUN, {}, port), { WORD: 'two' }, noDrain)
    expect(fixed.port).toBe(port)
    expect(await fixed.get()).toBe('two')
    const failed = fixed.supervisor.replace(planOf('exit 1', {}, port), {}, noDrain)
    expect(failed).rejects.toThrow('exit code 1')
    await failed.catch(() => {})
    expect(await fixed.get()).toBe('two')
    const taken = app.supervisor.start(planOf(RUN, {}, port), {})
    expect(taken).rejects.toThrow(
      new RegExp(`wants port ${port}, which another app of (this berth|its server) has`),
    )
    await taken.catch(() => {})
  })
})

describe('another version of an app that ignores PORT', () => {
  const FIXED = `Bun.serve({ port: 5557, hostname: '127.0.0.1', fetch: () => new Response(process.env.WORD) })`

  test('is started when the one before has let go of their port, and the log names the remedy', async () => {
    await using world = await World.open()
    await world.write('app', { 'server.js': FIXED })
    const app = await world.supervise('app')
    await app.supervisor.start(planOf(RUN), { WORD: 'first' })
    expect(await app.lines('berth')).toContainEqual(expect.stringContaining('the port in the variable PORT'))
    await app.supervisor.replace(planOf(RUN), { WORD: 'second' }, noDrain)
    expect(await app.get()).toBe('second')
    expect(app.supervisor.crash).toBeNull()
    expect(await app.lines('berth')).toContainEqual(
      expect.stringContaining('Port 5557 is held by the version before'),
    )
  })

  test('that fails all the same has the one before started again', async () => {
    await using world = await World.open()
    await world.write('app', { 'server.js': FIXED, 'bad.js': `console.error('EADDRINUSE'); process.exit(4)` })
    const app = await world.supervise('app')
    await app.supervisor.start(planOf(RUN), { WORD: 'first' })
    await expect(app.supervisor.replace(planOf('bun bad.js'), {}, noDrain)).rejects.toThrow('exit code 4')
    expect(await app.get()).toBe('first')
  })
})

describe('another program', () => {
  test('on the other address of a port that the app wants is not taken for it', async () => {
    await using world = await World.open()
    using other = Bun.serve({ hostname: '::1', port: 0, fetch: () => new Response('not the app') })
    const app = await world.supervise('', { limitMs: 1_500 })
    const started = app.supervisor.start(planOf('exec sleep 300', {}, other.port), {})
    expect(started).rejects.toThrow('did not listen')
    await started.catch(() => {})
    expect(app.states.map(({ kind }) => kind)).not.toContain('healthy')
  })

  test('that answers at 127.0.0.1 on the port of an app at ::1 is passed over for the app', async () => {
    await using world = await World.open()
    using other = Bun.serve({ hostname: '127.0.0.1', port: 0, fetch: () => new Response('not the app') })
    const app = await world.supervise('app')
    const port = other.port ?? 0
    await world.write('app', {
      'app.py': [
        'import http.server, socket',
        'class Server(http.server.HTTPServer): address_family = socket.AF_INET6',
        `Server(("::1", ${port}), http.server.SimpleHTTPRequestHandler).serve_forever()`,
      ].join('\n'),
    })
    await app.supervisor.start(planOf('exec python3 app.py'), {})
    expect(app.supervisor.state).toMatchObject({ kind: 'healthy', host: '::1', port })
  })
})

describe('the end', () => {
  test('by stop gives the app a chance to clean up, and cuts a start short', async () => {
    await using world = await World.open()
    const app = await world.supervise('')
    const command = `trap 'echo bye; exit 0' TERM; echo up; while :; do sleep 0.02; done`
    const started = app.supervisor.start(planOf(command), {})
    started.catch(() => {})
    await until('it to run', async () => (await app.lines('app')).length > 0)
    const queued = app.supervisor.start(planOf('sleep 300'), {})
    queued.catch(() => {})
    await Promise.all([app.supervisor.stop(), app.supervisor.stop()])
    expect(started).rejects.toThrow('The app was stopped.')
    expect(queued).rejects.toThrow('The app was stopped.')
    expect(await app.lines('app')).toContain('bye')
    expect(await world.bench.commands()).toEqual([])
    expect(app.supervisor.state.kind).toBe('stopped')
  })

  test('by SIGKILL comes to an app that ignores SIGTERM', async () => {
    await using world = await World.open()
    await world.write('app', { 'server.js': `process.on('SIGTERM', () => {});${SERVER}` })
    const app = await world.supervise('app', { graceMs: 200 })
    await app.supervisor.start(planOf(RUN), {})
    await app.supervisor.stop()
    expect(await world.bench.commands()).toEqual([])
  })

  test('of the server is not a crash: nothing is started again', async () => {
    await using world = await World.open()
    const app = await serverIn(world)
    await app.supervisor.start(planOf(RUN), {})
    await world.sandbox.stop()
    await app.becomes('stopped')
    await world.clock.advance(60_000)
    expect(app.kinds).toEqual(['starting', 'healthy', 'stopped'])
    expect(app.supervisor.start(planOf(RUN), {})).rejects.toThrow('The server was stopped.')
    await app.supervisor.stop()
  })

  test('of the server while an app starts fails the start', async () => {
    await using world = await World.open()
    const app = await world.supervise('')
    const started = app.supervisor.start(planOf('echo up; sleep 300'), {})
    started.catch(() => {})
    await until('it to run', async () => (await app.lines('app')).length > 0)
    await world.sandbox.stop()
    expect(started).rejects.toBeInstanceOf(AppError)
    await started.catch(() => {})
    expect(app.supervisor.state.kind).toBe('stopped')
  })
})

describe('ports', () => {
  test('of many apps that start together are all different', async () => {
    await using world = await World.open({ memoryBytes: 2 ** 30 })
    await world.write('app', { 'server.js': SERVER })
    const apps = await Promise.all(
      Array.from({ length: 6 }, () => world.supervise('app', { limitMs: 30_000 })),
    )
    await Promise.all(apps.map((app, index) => app.supervisor.start(planOf(RUN), { WORD: `app ${index}` })))
    expect(new Set(apps.map((app) => app.port)).size).toBe(6)
    expect(await Promise.all(apps.map((app) => app.get()))).toEqual([0, 1, 2, 3, 4, 5].map((n) => `app ${n}`))
    expect((await run(world.sandbox, 'true')).exitCode).toBe(0)
  })

  test('that another program listens on are refused with the remedy', async () => {
    using listener = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: () => new Response('') })
    const ports = new AppPorts()
    const port = Number(listener.port)
    await expect(ports.claim(SHARED, port)).rejects.toThrow(
      `wants port ${port}, on which another program of this machine listens`,
    )
  })

  test('are given out once, until they are let go', async () => {
    const ports = new AppPorts()
    const given = await ports.reserve(SHARED)
    await expect(ports.claim(SHARED, given.port)).rejects.toThrow('which another app of this berth has')
    given.release()
    expect((await ports.claim(SHARED, given.port)).port).toBe(given.port)
  })
})

describe('the ports of a server with its own network', () => {
  /** A server in whose network a program listens on these ports. */
  const server = (...taken: number[]) => ({
    network: 'own' as const,
    async dial(port: number, host: LoopbackHost, handlers: DialHandlers) {
      if (!taken.includes(port)) throw new DialRefused(host, port)
      using listener = Bun.listen({ hostname: '127.0.0.1', port: 0, socket: { data() {} } })
      return await dialLoopback(listener.port, '127.0.0.1', handlers)
    },
  })

  test('are 3000 for the first app of each, then the next that are free there', async () => {
    const ports = new AppPorts()
    const [one, other] = [server(), server(3000, 3002)]
    const given = await Promise.all([one, one, other, other].map((each) => ports.reserve(each)))
    expect(given.slice(0, 2).map(({ port }) => port)).toEqual([3000, 3001])
    expect(new Set(given.slice(2).map(({ port }) => port))).toEqual(new Set([3001, 3003]))
  })

  test('are its own whichever program listens on this machine, and refused if a program of the server does', async () => {
    using listener = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: () => new Response('') })
    const port = Number(listener.port)
    const ports = new AppPorts()
    const first = await ports.claim(server(), port)
    expect((await ports.claim(server(), port)).port).toBe(first.port)
    await expect(ports.claim(server(port), port)).rejects.toThrow(
      `wants port ${port}, on which another program of its server listens. Drop "port"`,
    )
    const shared = server()
    const taken = await ports.reserve(shared)
    await expect(ports.claim(shared, taken.port)).rejects.toThrow('which another app of its server has')
    taken.release()
    expect((await ports.claim(shared, taken.port)).port).toBe(3000)
  })
})
