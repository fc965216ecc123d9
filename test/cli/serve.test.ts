import { expect, test } from 'bun:test'
import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { freePort } from '../support/ports.ts'
import { processesOf, until } from '../support/processes.ts'
import { command as berthCommand, READY_KEYS } from '../support/serve.ts'
import { run, serve, start, temporaryFolder } from './command.ts'
import { onTerminal } from './terminal.ts'

test('with --json stdout carries one line, the ready line with its keys in order; the rest goes to stderr', async () => {
  using folder = temporaryFolder()
  const child = start(['--json', '--port', '0', '--log-level', 'debug'], { cwd: folder.path })
  const stderr = child.stderr.text()
  const chunks: string[] = []
  for await (const chunk of child.stdout.pipeThrough(new TextDecoderStream())) {
    chunks.push(chunk)
    const info = JSON.parse(chunks.join(''))
    expect((await fetch(`${info.base_url}/_berth/health`)).status).toBe(200)
    child.kill('SIGTERM')
  }
  const lines = chunks.join('').split('\n')
  expect(lines.length).toBe(2)
  const info = JSON.parse(lines[0] ?? '')
  expect(Object.keys(info)).toEqual(READY_KEYS)
  expect(info).toMatchObject({
    event: 'ready',
    pid: child.pid,
    mcp_url: `${info.base_url}/mcp`,
    docs_url: `${info.base_url}/docs`,
    data_dir: join(folder.path, '.berth'),
  })
  expect(info.started_in_ms).toBeGreaterThan(0)
  expect(await child.exited).toBe(0)
  expect(await stderr).not.toContain(info.api_key)
})

test('a request that comes while berth starts waits for its response', async () => {
  const port = freePort()
  const request = async (): Promise<Response> => {
    for (;;) {
      try {
        return await fetch(`http://127.0.0.1:${port}/openapi.json`)
      } catch {
        // It does not listen yet.
      }
    }
  }
  // Starts differ in what is ready first.
  for (let times = 0; times < 5; times += 1) {
    const starting = serve(['--port', `${port}`])
    const { status } = await request()
    await using _berth = await starting
    expect(status).toBe(200)
  }
})

test.each(['SIGINT', 'SIGTERM'] as const)('%s ends the service in order with exit code 0', async (signal) => {
  await using berth = await serve()
  const { data_dir, base_url } = berth.info
  expect(statSync(join(data_dir, 'instance.json')).mode & 0o777).toBe(0o600)
  berth.child.kill(signal)
  expect(await berth.child.exited).toBe(0)
  expect(existsSync(join(data_dir, 'instance.json'))).toBe(false)
  expect(fetch(base_url)).rejects.toThrow()
})

test('a second signal exits at once, whatever still goes on', async () => {
  await using berth = await serve()
  const server = await berth.server()
  const exec = start(['exec', server, 'echo ready; sleep 60'], { cwd: berth.cwd })
  await exec.stdout.getReader().read()
  berth.child.kill('SIGINT')
  berth.child.kill('SIGTERM')
  expect(await berth.child.exited).toBe(0)
  // In order, the command would have been ended and its end told; so the connection just breaks.
  expect(await exec.stderr.text()).toMatch(/^berth: The connection .* Is berth still running\?\n$/)
  expect(await exec.exited).toBe(1)
  await until(() => processesOf(berth.cwd).length === 0, 'no process is left')
})

test('an ephemeral folder is gone after the end', async () => {
  await using berth = await serve(['--ephemeral'])
  expect(existsSync(berth.info.data_dir)).toBe(true)
  expect(berth.info.data_dir).not.toStartWith(berth.cwd)
  berth.child.kill('SIGINT')
  await berth.child.exited
  expect(existsSync(berth.info.data_dir)).toBe(false)
})

test('a later start on the same folder has the same credentials', async () => {
  using folder = temporaryFolder()
  const first = await serve([], { cwd: folder.path })
  await first[Symbol.asyncDispose]()
  await using second = await serve([], { cwd: folder.path })
  expect(second.info.api_key).toBe(first.info.api_key)
  expect(second.info.admin_token).toBe(first.info.admin_token)
})

test('a taken port is reported in one sentence with the remedy', async () => {
  await using other = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: () => new Response() })
  using folder = temporaryFolder()
  const { exitCode, stdout, stderr } = await run(['serve', '--port', String(other.port)], {
    cwd: folder.path,
  })
  expect({ exitCode, stdout }).toEqual({ exitCode: 1, stdout: '' })
  expect(stderr).toMatch(new RegExp(`^berth: .*\\b${other.port}\\b.*--port.*\\n$`))
  expect(existsSync(join(folder.path, '.berth/instance.json'))).toBe(false)
})

test('a port that browsers refuse is reported at the start, and others are not', async () => {
  // Whichever of them no other program has.
  const refused = [6665, 6666, 6667, 6668, 6669].find(isFree)
  using folder = temporaryFolder()
  for (const [port, isTold] of [
    [refused, true],
    [freePort(), false],
  ] as const) {
    const child = start(['--port', `${port}`], { cwd: folder.path })
    const stderr = child.stderr.text()
    await child.stdout.getReader().read()
    child.kill('SIGTERM')
    expect((await stderr).includes(`browsers refuse port ${port}`)).toBe(isTold)
  }
})

function isFree(port: number): boolean {
  try {
    Bun.listen({ hostname: '127.0.0.1', port, socket: { data() {} } }).stop(true)
    return true
  } catch {
    return false
  }
}

test("a directory in use is reported with the running instance's address", async () => {
  await using berth = await serve()
  const { exitCode, stdout, stderr } = await run(['serve', '--port', '0'], { cwd: berth.cwd })
  expect({ exitCode, stdout }).toEqual({ exitCode: 1, stdout: '' })
  expect(stderr).toMatch(/^berth: .* in use.*\n$/)
  expect(stderr).toContain(berth.info.base_url)
  expect((await berth.run(['servers'])).exitCode).toBe(0)
})

test('a start on a folder whose berth is stopping waits for its end', async () => {
  await using first = await serve()
  const server = await first.server()
  // Keeps the berth until it is killed.
  const busy = start(['exec', server, '--', 'trap "" TERM; echo runs; sleep 60 & wait; sleep 60'], {
    cwd: first.cwd,
  })
  await busy.stdout.getReader().read()
  first.child.kill('SIGTERM')
  const entry = join(first.info.data_dir, 'instance.json')
  await until(
    () => existsSync(entry) && readFileSync(entry, 'utf8').includes('"ending"'),
    'the berth is stopping',
  )
  await using second = await serve([], { cwd: first.cwd })
  expect(await first.child.exited).toBe(0)
  expect(second.info.api_key).toBe(first.info.api_key)
  expect(readFileSync(entry, 'utf8')).not.toContain('ending')
  expect(await busy.exited).not.toBe(0)
})

test('settings come from berth.config.json of the working directory', async () => {
  using folder = temporaryFolder()
  writeFileSync(
    join(folder.path, 'berth.config.json'),
    '{"data":"elsewhere","apiKey":"sk_live_from_the_file"}',
  )
  await using berth = await serve([], { cwd: folder.path })
  expect(berth.info).toMatchObject({
    data_dir: join(folder.path, 'elsewhere'),
    api_key: 'sk_live_from_the_file',
  })
})

test('on a terminal a person reads where it is, how to begin and how to stop; Ctrl-C stops it', async () => {
  using folder = temporaryFolder()
  await using terminal = onTerminal([...berthCommand, '--port', '0'], { cwd: folder.path })
  await terminal.shows('Stop with q or Ctrl-C; ? lists the other keys.')
  const { api_key } = JSON.parse(readFileSync(join(folder.path, '.berth/credentials.json'), 'utf8'))
  const { base_url } = JSON.parse(readFileSync(join(folder.path, '.berth/instance.json'), 'utf8'))
  for (const text of [
    base_url,
    `${base_url}/mcp`,
    `${base_url}/docs`,
    api_key,
    join(folder.path, '.berth'),
    'Isolation',
    'berth servers create',
    'berth deploy .',
  ])
    expect(terminal.output()).toContain(text)
  expect(terminal.output()).not.toContain('BERTH_DATA')
  expect((await run(['servers', 'create'], { cwd: folder.path })).stdout).toStartWith('Provisioned srv_')
  terminal.type('\x03')
  await terminal.shows('stopping')
  expect(await terminal.exited).toBe(0)
})
