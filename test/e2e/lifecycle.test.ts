import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import {
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  utimesSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { dataMarkerOf } from '../../src/compute/local/server-directories.ts'
import { END_SIGNAL, isLocalCompute } from '../support/compute.ts'
import { readEvents } from '../support/events.ts'
import { processesOf, until } from '../support/processes.ts'
import { call, READY_KEYS, type ServeProcess, serve } from '../support/serve.ts'

let folder: string
const started: ServeProcess[] = []

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'berth-e2e-'))
})
afterEach(async () => {
  for (const { child } of started.splice(0)) {
    child.kill(END_SIGNAL)
    await child.exited
  }
  await until(() => processesOf(folder).length === 0, 'no process is left')
  rmSync(folder, { recursive: true, force: true })
})

const data = () => join(folder, 'data')
function start(args: string[] = [], env?: Record<string, string>): ServeProcess {
  // What goes on after its time is up, after its folder was removed, would leave a berth behind.
  if (!existsSync(folder)) throw new Error('the test is over')
  const process = serve(['--port', '0', '--data', data(), '--spare-servers', '0', ...args], env)
  started.push(process)
  return process
}

describe('the first start', () => {
  test('prints one ready line with all fields in order, and the key in it works', async () => {
    const { ready, child } = start()
    const info = await ready
    expect(Object.keys(info)).toEqual(READY_KEYS)
    expect(info).toMatchObject({ event: 'ready', pid: child.pid, data_dir: data() })
    expect(info.api_key).toMatch(/^sk_live_[0-9A-Za-z]{43}$/)
    expect((await call(info, 'GET', '/servers')).body).toEqual({ servers: [] })
  })

  test('keeps its secrets for the owner alone, and no key in the database', async () => {
    const info = await start().ready
    expect(statSync(data()).mode & 0o777).toBe(0o700)
    for (const file of ['credentials.json', 'instance.json', 'master.key']) {
      expect(statSync(join(data(), file)).mode & 0o777).toBe(0o600)
    }
    for (const file of readdirSync(data()).filter((name) => name.startsWith('berth.db'))) {
      expect(readFileSync(join(data(), file)).includes(info.api_key)).toBe(false)
    }
  })

  test('takes a given key', async () => {
    const key = `sk_live_${'a'.repeat(43)}`
    const info = await start(['--api-key', key]).ready
    expect(info.api_key).toBe(key)
    expect((await call(info, 'GET', '/servers')).status).toBe(200)
  })

  test('a seed and a frozen clock make ids, keys and times repeat', async () => {
    const once = async (name: string) => {
      const seeded = ['--rng-seed', '7', '--freeze', '2030-01-01T00:00:00Z']
      const process = serve(['--port', '0', '--data', join(folder, name), ...seeded])
      started.push(process)
      const info = await process.ready
      const { body } = await call(info, 'POST', '/servers')
      const { body: got } = await call(info, 'GET', `/servers/${body.id}`)
      return [info.api_key, body.id, got.server.createdAt]
    }
    const first = await once('one')
    expect(first).toEqual(await once('two'))
    expect(first[2]).toBe('2030-01-01T00:00:00.000Z')
  })
})

describe('standard output', () => {
  test('carries the ready line and nothing else, whatever is asked', async () => {
    const { child, ready, rest } = start()
    const info = await ready
    const { body } = await call(info, 'POST', '/servers')
    const path = `/servers/${body.id}`
    await call(info, 'GET', '/servers')
    await call(info, 'PATCH', path, { task: 'x' })
    await call(info, 'POST', `${path}/actions`, { action: 'restart' })
    await call(info, 'POST', `${path}/exec`, { command: 'true' })
    await call(info, 'PUT', `${path}/files`, { path: 'a', content: '' })
    await call(info, 'GET', `${path}/files`)
    await call(info, 'DELETE', `${path}/files?path=a`)
    await call(info, 'GET', '/openapi.json')
    await call(info, 'GET', '/nothing')
    await call(info, 'DELETE', path)
    child.kill('SIGTERM')
    expect(await rest).toBe('')
  })
})

describe('a seed', () => {
  test('with a frozen clock on a folder that is kept goes on where it was', async () => {
    const ids = new Set<string>()
    for (let n = 0; n < 4; n++) {
      const { child, ready } = start(['--rng-seed', '7', '--freeze', '2030-01-01T00:00:00Z'])
      const { status, body } = await call(await ready, 'POST', '/servers')
      expect(status).toBe(201)
      ids.add(body.id)
      child.kill('SIGTERM')
      await child.exited
    }
    expect(ids.size).toBe(4)
  })
})

test('an id that a seed repeats is not given to a server that an old key would reach', async () => {
  const options = ['--rng-seed', '7', '--freeze', '2030-01-01T00:00:00Z']
  const first = start(options)
  const info = await first.ready
  const { body: gone } = await call(info, 'POST', '/servers')
  await call(info, 'POST', '/keys', { label: 'old', allowed_server_ids: [gone.id] })
  await call(info, 'DELETE', `/servers/${gone.id}`)
  first.child.kill('SIGTERM')
  await first.child.exited
  const { body: next } = await call(await start(options).ready, 'POST', '/servers')
  expect(next.id).not.toBe(gone.id)
})

test('an invalid Host header is refused in the usual words at every level of the log', async () => {
  const info = await start(['--log-level', 'debug']).ready
  for (const host of ['localhost:99999', 'localhost/x', '::1', 'local host']) {
    const answer = await rawRequest(
      info.base_url,
      `GET /servers HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`,
    )
    expect([host, answer]).toEqual([host, expect.stringMatching(/^HTTP\/1\.1 40[0-9] /)])
  }
})

/** Sends bytes as they are; resolves to all that comes back. */
async function rawRequest(url: string, request: string): Promise<string> {
  const { promise, resolve } = Promise.withResolvers<string>()
  let text = ''
  await Bun.connect({
    hostname: '127.0.0.1',
    port: Number(new URL(url).port),
    socket: {
      open: (socket) => void socket.write(request),
      data: (_, chunk) => {
        text += chunk.toString()
      },
      close: () => resolve(text),
    },
  })
  return promise
}

describe('signals', () => {
  test.each(['SIGTERM', 'SIGINT'] as const)('%s ends it with 0, its processes too', async (signal) => {
    const { ready, child } = start()
    const info = await ready
    const { body } = await call(info, 'POST', '/servers')
    await call(info, 'POST', `/servers/${body.id}/exec`, { command: 'sleep 1000 & setsid sleep 1000 &' })
    child.kill(signal)
    expect(await child.exited).toBe(0)
    expect(processesOf(folder)).toEqual([])
    expect(existsSync(join(data(), 'instance.json'))).toBe(false)
  })

  test('SIGTERM during a stream ends the command and the stream', async () => {
    const { ready, child } = start()
    const info = await ready
    const { body } = await call(info, 'POST', '/servers')
    const response = await fetch(`${info.base_url}/servers/${body.id}/exec`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${info.api_key}`,
        'content-type': 'application/json',
        accept: 'text/event-stream',
      },
      body: JSON.stringify({ command: 'echo up; sleep 1000' }),
    })
    const events = readEvents(response)
    expect((await events.next()).value).toMatchObject({ event: 'stdout' })
    child.kill('SIGTERM')
    expect((await events.next()).value).toMatchObject({ event: 'exit' })
    expect(await child.exited).toBe(0)
    expect(processesOf(folder)).toEqual([])
  })

  test('a command that ignores SIGTERM is ended, and its request answered', async () => {
    const { ready, child } = start()
    const info = await ready
    const { body } = await call(info, 'POST', '/servers')
    const command = 'trap "" TERM; touch up; while :; do sleep 0.05; done'
    const answer = call(info, 'POST', `/servers/${body.id}/exec`, { command })
    const isUp = async () => (await call(info, 'GET', `/servers/${body.id}/files`)).body.files.includes('up')
    await until(isUp, 'it runs')
    child.kill('SIGTERM')
    expect((await answer).body.exitCode).toBe(137)
    expect(await child.exited).toBe(0)
  })

  test('--ephemeral leaves no folder behind', async () => {
    const process = serve(['--port', '0', '--ephemeral'], { TMPDIR: folder })
    started.push(process)
    const info = await process.ready
    await call(info, 'POST', '/servers')
    expect(existsSync(info.data_dir)).toBe(true)
    process.child.kill('SIGTERM')
    expect(await process.child.exited).toBe(0)
    expect(readdirSync(folder)).toEqual([])
  })

  test('a second signal exits at once, and an --ephemeral folder goes all the same', async () => {
    const process = serve(['--port', '0', '--ephemeral'], { TMPDIR: folder })
    started.push(process)
    const info = await process.ready
    const { body } = await call(info, 'POST', '/servers')
    const command = 'trap "" TERM; touch up; while :; do sleep 0.05; done'
    const answer = call(info, 'POST', `/servers/${body.id}/exec`, { command }).catch(() => null)
    const isUp = async () => (await call(info, 'GET', `/servers/${body.id}/files`)).body.files.includes('up')
    await until(isUp, 'it runs')
    process.child.kill('SIGTERM')
    await until(async () => (await fetch(info.base_url).catch(() => null)) === null, 'it stops listening')
    process.child.kill('SIGTERM')
    expect(await process.child.exited).toBe(0)
    await answer
    expect(readdirSync(folder)).toEqual([])
  })

  test('an --ephemeral folder of a killed berth is removed by the next ephemeral start, one in use is not', async () => {
    const run = async () => {
      const process = serve(['--port', '0', '--ephemeral'], { TMPDIR: folder })
      started.push(process)
      return { ...process, info: await process.ready }
    }
    const [killed, running] = [await run(), await run()]
    killed.child.kill('SIGKILL')
    await killed.child.exited
    const old = new Date(Date.now() - 3_600_000)
    for (const { info } of [killed, running]) utimesSync(info.data_dir, old, old)
    await run()
    await until(() => !existsSync(killed.info.data_dir), 'it is gone')
    expect(existsSync(running.info.data_dir)).toBe(true)
  })
})

describe('kill -9', () => {
  test('leaves no process; the next start has the servers, their files and the key', async () => {
    const first = start()
    const info = await first.ready
    const { body: running } = await call(info, 'POST', '/servers', { task: 'kept' })
    const { body: asleep } = await call(info, 'POST', '/servers')
    await call(info, 'POST', `/servers/${asleep.id}/actions`, { action: 'stop' })
    await call(info, 'PUT', `/servers/${running.id}/files`, { path: 'file', content: 'kept' })
    await call(info, 'POST', `/servers/${running.id}/exec`, { command: 'sleep 1000 & setsid sleep 1000 &' })
    first.child.kill('SIGKILL')
    await first.child.exited
    await until(() => processesOf(folder).length === 0, 'every process is gone')

    const again = await start().ready
    expect(again.api_key).toBe(info.api_key)
    expect(again.admin_token).toBe(info.admin_token)
    const { body } = await call(again, 'GET', '/servers')
    expect(body.servers.map(({ id, status }: { id: string; status: string }) => [id, status])).toEqual([
      [asleep.id, 'sleeping'],
      [running.id, 'running'],
    ])
    const result = await call(again, 'POST', `/servers/${running.id}/exec`, { command: 'cat file' })
    expect(result.body.stdout).toBe('kept')
  })

  test('during provisioning loses nothing that was acknowledged', async () => {
    const first = start()
    const info = await first.ready
    const acknowledged: string[] = []
    const provisioning = Array.from({ length: 8 }, async () => {
      for (;;) acknowledged.push((await call(info, 'POST', '/servers')).body.id)
    })
    const all = Promise.allSettled(provisioning)
    await until(() => acknowledged.length >= 10, 'ten servers are there', 20_000)
    first.child.kill('SIGKILL')
    await first.child.exited
    // With berth its listening socket and its lock are gone, whatever it was just starting.
    expect(await Promise.race([all.then(() => 'ended'), Bun.sleep(8_000)])).toBe('ended')

    // A sandbox that was just starting is named by its command line alone.
    const marker = dataMarkerOf(realpathSync(data()))
    await until(() => processesOf(marker).length === 0, 'the end of half-started sandboxes')

    const again = await start().ready
    const { body } = await call(again, 'GET', '/servers')
    const present = new Set(body.servers.map(({ id }: { id: string }) => id))
    expect(acknowledged.filter((id) => !present.has(id))).toEqual([])
    if (!isLocalCompute) return
    const orphans = () => readdirSync(join(data(), 'servers')).filter((id) => !present.has(id))
    await until(() => orphans().length === 0, 'folders without a server are gone')
  })
})

describe('a start that cannot be', () => {
  test('port taken: 1, with cause and remedy', async () => {
    using taken = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: () => new Response() })
    const { child, stderr } = serve(['--port', String(taken.port), '--data', data()])
    expect(await child.exited).toBe(1)
    expect(await stderr).toMatch(new RegExp(`^berth: Port ${taken.port} .*--port`))
    expect((await stderr).trim().split('\n').length).toBe(1)
  })

  test('port taken: nothing is left of a data directory that the start created, and a used one stays', async () => {
    using taken = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: () => new Response() })
    const used = start()
    await used.ready
    used.child.kill('SIGTERM')
    expect(await used.child.exited).toBe(0)
    for (const path of [join(folder, 'deep/down/data'), data()]) {
      const { child } = serve(['--port', String(taken.port), '--data', path])
      expect(await child.exited).toBe(1)
    }
    expect(existsSync(join(folder, 'deep'))).toBe(false)
    expect(existsSync(join(data(), 'credentials.json'))).toBe(true)
  })

  test('port taken by another berth: 1 too, with its directory and how to stop it, and it goes on', async () => {
    const info = await start().ready
    const again = async () => {
      const { child, stderr } = serve([
        '--port',
        new URL(info.base_url).port,
        '--data',
        join(folder, 'other'),
      ])
      expect(await child.exited).toBe(1)
      return await stderr
    }
    let said = await again()
    // It is in the list a moment after its ready line.
    await until(async () => {
      said = await again()
      return said.includes('the berth on')
    }, 'the other is in the list')
    expect(said).toContain(`is taken by the berth on ${info.data_dir} (pid ${info.pid})`)
    expect(said).toContain(`berth stop --data ${info.data_dir}`)
    expect(said).toContain('--port 0')
    expect(existsSync(join(folder, 'other'))).toBe(false)
    for (let n = 0; n < 8; n++) expect((await call(info, 'GET', '/servers')).status).toBe(200)
  })

  test('folder in use: 1, with the address of the berth that runs there, which goes on', async () => {
    const info = await start().ready
    const { child, stderr } = serve(['--port', '0', '--data', data()])
    expect(await child.exited).toBe(1)
    expect(await stderr).toContain(info.base_url)
    expect((await call(info, 'GET', '/servers')).status).toBe(200)
  })

  test('config file that is not JSON: 1; a bad flag: 2', async () => {
    const config = join(folder, 'bad.json')
    await Bun.write(config, '{port: }')
    const unreadable = serve(['--config', config])
    expect(await unreadable.child.exited).toBe(1)
    expect(await unreadable.stderr).toContain(config)
    const wrong = serve(['--port', 'many'])
    expect(await wrong.child.exited).toBe(2)
    expect(await wrong.stderr).toContain('--port')
  })

  test.skipIf(!isLocalCompute)(
    'an isolation that this machine does not have: 1, with the remedy',
    async () => {
      const { child, stderr } = serve(['--port', '0', '--data', data(), '--isolation', 'bubblewrap'], {
        PATH: folder,
      })
      expect(await child.exited).toBe(1)
      expect(await stderr).toMatch(/bubblewrap.*install/i)
    },
  )
})
