import { expect, test } from 'bun:test'
import { command } from '../support/serve.ts'
import { type Served, serve, serveForTests, start } from './command.ts'
import { onTerminal } from './terminal.ts'

const berth = await serveForTests(['--isolation', 'none'])

/** Follows changes until `use` has seen enough; returns the exit code after Ctrl-C. */
async function follow(args: readonly string[], use: (lines: readonly string[]) => Promise<boolean>) {
  const child = start(['changes', ...args], { cwd: berth.cwd })
  let text = ''
  for await (const chunk of child.stdout.pipeThrough(new TextDecoderStream())) {
    text += chunk
    if (await use(text.split('\n').slice(0, -1))) child.kill('SIGINT')
  }
  return child.exited
}

test('changes are printed as lines of JSON, those of the types that are asked for', async () => {
  let created = ''
  const exitCode = await follow(['server', '--json'], async (lines) => {
    if (created === '') {
      expect(lines).toEqual(['{"type":"ready"}'])
      const { stdout } = await berth.run(['servers', 'create', '--task', 'watched', '--json'])
      created = JSON.parse(stdout).id
    }
    const sent = lines.slice(1).map((line) => JSON.parse(line))
    for (const one of sent) expect(one).toMatchObject({ type: 'server', id: created })
    return sent.some(({ value }) => value.task === 'watched')
  })
  expect(exitCode).toBe(130)
})

test('people see a line for each, and what is gone', async () => {
  const { stdout } = await berth.run(['servers', 'create', '--json'])
  const { id } = JSON.parse(stdout)
  let isDeleted = false
  const exitCode = await follow([], async (lines) => {
    if (!isDeleted) await berth.run(['servers', 'delete', id, '--yes'])
    isDeleted = true
    return lines.includes(`server  ${id}  gone`)
  })
  expect(exitCode).toBe(130)
  expect(await berth.run(['changes', 'servers'])).toMatchObject({ exitCode: 2, stdout: '' })
})

test('on a terminal a change takes one line', async () => {
  const columns = 60
  await using person = onTerminal([...command, 'changes', 'server'], { cwd: berth.cwd, columns })
  await person.shows('are shown')
  const { stdout } = await berth.run(['servers', 'create', '--task', 'x'.repeat(columns), '--json'])
  await person.shows(`${JSON.parse(stdout).id}  {`)
  await person.shows('…')
  const lines = Bun.stripANSI(person.output()).split('\r\n').slice(1, -1)
  for (const line of lines) expect(line.length).toBeLessThanOrEqual(columns)
})

test('reports a reset by a gap, and prints the changes after it', async () => {
  let at = 0
  const exitCode = await follow(['--json'], async (lines) => {
    const types = lines.map((line) => JSON.parse(line).type)
    if (at === 0) await berth.run(['reset', '--no-undo', '--yes'])
    const gap = types.indexOf('gap')
    if (at === 1 && types.lastIndexOf('ready') > gap && gap > 0) {
      at = 2
      await berth.run(['servers', 'create', '--task', 'after'])
    }
    if (at === 0) at = 1
    return lines.slice(gap + 1).some((line) => line.includes('"after"'))
  })
  expect(exitCode).toBe(130)
})

test('reports a restart, and prints the changes of the next start', async () => {
  const own = await serve(['--isolation', 'none'])
  const child = start(['changes', '--json'], { cwd: own.cwd })
  let text = ''
  const said = child.stderr.text()
  let next: Served | null = null
  for await (const chunk of child.stdout.pipeThrough(new TextDecoderStream())) {
    text += chunk
    if (next === null) {
      own.child.kill('SIGTERM')
      await own.child.exited
      next = await serve(['--isolation', 'none'], { cwd: own.cwd })
    } else if (text.includes('"type":"gap"') && text.endsWith('{"type":"ready"}\n'))
      await next.run(['servers', 'create', '--task', 'next'])
    else if (text.includes('"next"')) child.kill('SIGINT')
  }
  expect(await child.exited).toBe(130)
  expect(text.split('\n')[0]).toBe('{"type":"ready"}')
  expect(await said).not.toContain('Error')
  await next?.[Symbol.asyncDispose]()
  await own[Symbol.asyncDispose]()
})

test('with --all there are requests and events of the instance, and the other way round it says how', async () => {
  const exitCode = await follow(['--all', 'request', '--json'], async (lines) => {
    if (lines.length === 1) await berth.run(['servers', 'create', '--task', 'seen'])
    return lines.slice(1).some((line) => {
      expect(JSON.parse(line).type).toBe('request')
      return line.includes('servers.create')
    })
  })
  expect(exitCode).toBe(130)
  const { exitCode: refused, stderr } = await berth.run(['changes', 'request'])
  expect([refused, stderr]).toEqual([2, expect.stringContaining('berth changes --all request')])
})

test('ends with the reason when nothing responds at first', async () => {
  const gone = ['--base-url', 'http://127.0.0.1:9', '--api-key', 'sk_live_x']
  const { exitCode, stderr } = await berth.run(['changes', ...gone])
  expect([exitCode, stderr]).toEqual([1, expect.stringContaining('Nothing answers at http://127.0.0.1:9')])
})
