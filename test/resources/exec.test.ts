import { describe, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { connect } from 'node:net'
import { berthForTests } from '../support/berth.ts'
import { readEvents } from '../support/events.ts'
import { processesOf, until } from '../support/processes.ts'

const berth = await berthForTests()
const server = await berth.server()

const exec = (command: string, rest?: object) => berth.exec(server, command, rest)

describe('POST /servers/{serverId}/exec', () => {
  test('gives stdout, stderr and exit code, each in its own field', async () => {
    expect(await exec('echo out; echo err >&2; exit 3')).toEqual({
      stdout: 'out\n',
      stderr: 'err\n',
      exitCode: 3,
      timedOut: false,
      truncated: false,
    })
  })

  test('runs in the workspace, which is the home directory', async () => {
    const { stdout } = await exec('[ "$PWD" = "$HOME" ] && echo home; echo x > from-command')
    expect(stdout).toBe('home\n')
    expect((await berth.call('GET', `/servers/${server}/files?path=from-command`)).body.content).toBe('x\n')
  })

  test('gives the command a clean environment, with the addresses of berth and its package mirror alone', async () => {
    const { stdout } = await exec('env | grep ^BERTH | grep -v -e ^BERTH_BASE_URL= -e ^BERTH_PACKAGES_')
    expect(stdout).toBe('')
    const { stdout: rest } = await exec('env | grep -v ^BERTH_ | cut -d= -f1')
    for (const name of rest.trim().split('\n')) {
      expect(name).toMatch(
        /^(PATH|HOME|USER|LOGNAME|SHELL|LANG|TERM|TMPDIR|PWD|OLDPWD|SHLVL|_|INVOCATION_ID|OMP_NUM_THREADS|GOMAXPROCS|(npm_config|pnpm_config|COREPACK|YARN|BUN_INSTALL|PIP|PIPENV|PDM|UV|POETRY|CARGO|GRADLE_USER|COMPOSER_CACHE|BUNDLE_USER|MAVEN)_\w+|RUBYOPT|PNPM_HOME|GO(PROXY|CACHE|MODCACHE))$/,
      )
    }
  })

  test('tells the command the address of the API, without a credential; the user’s own wins', async () => {
    expect((await exec('printenv BERTH_BASE_URL')).stdout).toBe(`${berth.info.base_url}\n`)
    const { stdout } = await exec('curl -s "$BERTH_BASE_URL/_berth/health"; env')
    expect(stdout).toContain('"status":"ok"')
    for (const credential of [berth.info.api_key, berth.info.admin_token]) {
      expect(stdout).not.toContain(credential)
    }
    const env = { BERTH_BASE_URL: 'http://mine' }
    expect((await exec('printenv BERTH_BASE_URL', { env })).stdout).toBe('http://mine\n')
  })

  test('takes cwd, env and stdin', async () => {
    await exec('mkdir -p sub/folder')
    const { stdout } = await exec('pwd; echo "$GREETING"; cat', {
      cwd: 'sub/folder',
      env: { GREETING: "it's" },
      stdin: 'from stdin',
    })
    expect(stdout).toMatch(/\/sub\/folder\nit's\nfrom stdin$/)
  })

  test.each(['sub', '/workspace/sub', 'sub/../sub/'])('runs in the folder %s', async (cwd) => {
    await exec('mkdir -p sub')
    expect((await exec('pwd', { cwd })).stdout).toMatch(/\/sub\n$/)
    expect((await exec('[ "$PWD" = "$HOME" ] && echo home', { cwd: '/workspace' })).stdout).toBe('home\n')
  })

  test('an empty command does nothing, successfully', async () => {
    expect(await exec('')).toMatchObject({ stdout: '', exitCode: 0 })
  })

  test('standard input is empty without stdin', async () => {
    expect((await exec('wc -c')).stdout.trim()).toBe('0')
  })

  test('a signal gives 128+n', async () => {
    expect((await exec('kill -TERM $$')).exitCode).toBe(143)
  })

  test('ends after the timeout with everything it started, a double setsid too', async () => {
    const started = performance.now()
    const result = await exec('setsid setsid sleep 4321 & setsid sleep 4321 & sleep 4321', { timeoutMs: 200 })
    expect(result.timedOut).toBe(true)
    expect(performance.now() - started).toBeLessThan(30_000)
    await until(
      () => !processesOf(berth.dataDir).some((line) => line.includes('sleep 4321')),
      'the command is gone',
    )
  })

  test('does not wait for what it leaves in the background, which lives on', async () => {
    const started = performance.now()
    expect((await exec('sleep 5432 & echo done')).stdout).toBe('done\n')
    expect(performance.now() - started).toBeLessThan(30_000)
    expect(processesOf(berth.dataDir).some((line) => line.includes('sleep 5432'))).toBe(true)
  })

  test('keeps 10 MiB of a stream and says so', async () => {
    const result = await exec('head -c 12000000 /dev/zero')
    expect(result.truncated).toBe(true)
    expect(result.stdout.length).toBe(10 * 1024 * 1024)
  })

  test('a client that goes away ends the command', async () => {
    const gone = new AbortController()
    const answer = berth.fetch(`/servers/${server}/exec`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ command: 'sleep 6543' }),
      signal: gone.signal,
    })
    const runs = () => processesOf(berth.dataDir).some((line) => line.includes('sleep 6543'))
    await until(runs, 'the command runs')
    gone.abort()
    await expect(answer).rejects.toThrow()
    await until(() => !runs(), 'the command is gone')
  })

  test('a command may be longer than what Linux passes as one argument', async () => {
    expect((await exec(`echo ${'x'.repeat(1_000_000)} | wc -c`)).stdout.trim()).toBe('1000001')
  })

  test('wakes a sleeping server', async () => {
    const id = await berth.server()
    await berth.call('POST', `/servers/${id}/actions`, { action: 'stop' })
    expect((await berth.exec(id, 'echo awake')).stdout).toBe('awake\n')
    expect((await berth.call('GET', `/servers/${id}`)).body.server.status).toBe('running')
  })

  test('stop ends a command under way, which answers with the signal', async () => {
    const id = await berth.server()
    const running = berth.exec(id, 'sleep 7654')
    await until(
      () => processesOf(berth.dataDir).some((line) => line.includes('sleep 7654')),
      'the command runs',
    )
    await berth.call('POST', `/servers/${id}/actions`, { action: 'stop' })
    expect([137, 143]).toContain((await running).exitCode)
  })

  test('a command that kills every process it can answers, and the server can be used again', async () => {
    const id = await berth.server()
    if (berth.info.isolation === 'bubblewrap') {
      await berth.exec(id, 'sleep 1234 >/dev/null 2>&1 &')
      // Process 1 stays, so the server runs on; the shell is not among those that it signals.
      expect((await berth.exec(id, 'kill -9 -1; exit 3')).exitCode).toBe(3)
      expect((await berth.call('GET', `/servers/${id}`)).body.server.status).toBe('running')
      const isGone = async () => (await berth.exec(id, 'pgrep -f "sleep 123[4]"')).stdout === ''
      await until(isGone, 'the killed process to be gone')
    }
    expect((await berth.exec(id, 'echo back')).stdout).toBe('back\n')
  })

  test('variables beyond what Linux takes are refused', async () => {
    const env = Object.fromEntries(Array.from({ length: 60 }, (_, n) => [`A${n}`, 'x'.repeat(60_000)]))
    const { status, body } = await berth.call('POST', `/servers/${server}/exec`, { command: 'true', env })
    expect([status, body.message]).toEqual([400, expect.stringContaining('"env"')])
  })

  test('200 at once all answer', async () => {
    const results = await Promise.all(Array.from({ length: 200 }, (_, n) => exec(`echo ${n}`)))
    expect(results.map(({ stdout }) => stdout)).toEqual(Array.from({ length: 200 }, (_, n) => `${n}\n`))
  })
})

describe('as an event stream', () => {
  const stream = (command: string, rest: object = {}, signal?: AbortSignal) =>
    berth.fetch(`/servers/${server}/exec`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', accept: 'text/event-stream' },
      body: JSON.stringify({ command, ...rest }),
      ...(signal ? { signal } : {}),
    })

  test('sends output as it comes and the exit last', async () => {
    const response = await stream(
      'echo first; while [ ! -e go ]; do sleep 0.02; done; echo second >&2; exit 4',
    )
    expect(response.headers.get('content-type')).toBe('text/event-stream')
    const events = readEvents(response)
    expect((await events.next()).value).toEqual({ event: 'stdout', data: { data: 'first\n' } })
    await exec('touch go')
    expect(await Array.fromAsync(events)).toEqual([
      { event: 'stderr', data: { data: 'second\n' } },
      { event: 'exit', data: { exitCode: 4, timedOut: false, truncated: false } },
    ])
  })

  test('keeps a character whole that comes in two pieces', async () => {
    const events = await Array.fromAsync(
      readEvents(await stream("printf '\\342\\202'; sleep 0.1; printf '\\254'")),
    )
    expect(events.filter(({ event }) => event === 'stdout').map(({ data }) => data.data)).toEqual(['€'])
  })

  test('sends bytes that are not text as base64', async () => {
    const events = await Array.fromAsync(readEvents(await stream("printf '\\377\\376'")))
    expect(events[0]).toEqual({ event: 'stdout', data: { data: '//4=', encoding: 'base64' } })
  })

  test('closing the connection ends the command', async () => {
    const gone = new AbortController()
    const response = await stream('echo up; sleep 8765', {}, gone.signal)
    await readEvents(response).next()
    gone.abort()
    await until(
      () => !processesOf(berth.dataDir).some((line) => line.includes('sleep 8765')),
      'the command is gone',
    )
  })

  test('a client that does not read holds the command back instead of filling memory', async () => {
    const { hostname, port } = new URL(berth.info.base_url)
    const body = JSON.stringify({ command: 'yes 0123456789abcdef | head -c 300000000' })
    const socket = connect(Number(port), hostname)
    socket.pause()
    socket.write(
      `POST /servers/${server}/exec HTTP/1.1\r\nHost: ${hostname}\r\nAuthorization: Bearer ${berth.info.api_key}\r\n` +
        `Accept: text/event-stream\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
    )
    const writer = () => processesOf(berth.dataDir).find((line) => /^\d+ head -c/.test(line))
    await until(() => writer() !== undefined, 'the command runs')
    // Blocked in a write for good: what it has written does not grow from one look to the next.
    const pid = writer()?.split(' ')[0]
    const written = () => Number(/wchar: (\d+)/.exec(readFileSync(`/proc/${pid}/io`, 'utf8'))?.[1])
    let before = -1
    await until(async () => {
      const now = written()
      const stands = now > 0 && now === before
      before = now
      await Bun.sleep(200)
      return stands
    }, 'the command is held back')
    expect(before).toBeLessThan(50_000_000)
    expect((await exec('echo other')).stdout).toBe('other\n')
    socket.destroy()
    await until(() => writer() === undefined, 'the command is gone')
  })

  test('a refusal is a plain answer, not a stream', async () => {
    const response = await stream('a\0b')
    expect(response.status).toBe(400)
    expect(response.headers.get('content-type')).toContain('application/json')
  })
})
