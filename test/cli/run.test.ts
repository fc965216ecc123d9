import { expect, test } from 'bun:test'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { readProcess } from '../../src/compute/processes.ts'
import { shellQuote } from '../../src/runtime/shell-quote.ts'
import { markText, ownMark } from '../../src/system/process-mark.ts'
import { executable } from '../support/berth.ts'
import { processesOf, until } from '../support/processes.ts'
import { command as berthCommand } from '../support/serve.ts'
import { type Outcome, run, start, temporaryFolder } from './command.ts'
import { onTerminal } from './terminal.ts'

/** A folder of the test's own for what instances make, so that what stays is seen. */
function place() {
  const folder = temporaryFolder()
  const env = { TMPDIR: folder.path, XDG_STATE_HOME: join(folder.path, 'state') }
  const state = join(folder.path, 'state/berth/instances')
  return {
    path: folder.path,
    env,
    /** Temporary folders of berth, and entries of the list, that are there. */
    left: () => [
      ...readdirSync(folder.path).filter((name) => name.startsWith('berth-')),
      ...(existsSync(state) ? readdirSync(state) : []),
    ],
    run: (
      args: readonly string[],
      more: { stdin?: Uint8Array; env?: Record<string, string> } = {},
    ): Promise<Outcome> => run(['run', ...args], { ...more, cwd: folder.path, env: { ...env, ...more.env } }),
    start: (args: readonly string[]) => start(['run', ...args], { cwd: folder.path, env }),
    [Symbol.dispose]: () => folder[Symbol.dispose](),
  }
}

/** berth as a shell command, for commands that talk to their instance. */
const berth = shellQuote(berthCommand)

/** A program that says which signals it gets, one a line, and ends at SIGUSR2. */
const HEARER = `
for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT', 'SIGUSR1'])
  process.on(name, () => console.log(name))
process.on('SIGUSR2', () => process.exit(7))
process.stdin.resume()
console.log('ready')
setInterval(() => {}, 1000)
`
const hearer = [process.execPath, '-e', HEARER]

test('the command has the streams, finds its instance, and nothing is there afterwards', async () => {
  using here = place()
  const script = `cat; echo err >&2; ${berth} servers create >/dev/null && ${berth} list --json; echo "$BERTH_DATA $BERTH_BASE_URL"; test -n "$BERTH_API_KEY$BERTH_ADMIN_TOKEN" && test "$BERTH_MCP_URL" = "$BERTH_BASE_URL/mcp"; exit $?`
  const { exitCode, stdout, stderr } = await here.run(['--', 'sh', '-c', script], {
    stdin: new TextEncoder().encode('input\n'),
  })
  expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: 'err\n' })
  const [input, list = '', where = ''] = stdout.split('\n')
  expect(input).toBe('input')
  const [folder = '', url = ''] = where.split(' ')
  expect(JSON.parse(list).instances).toMatchObject([{ data_dir: folder, base_url: url, started_by: 'run' }])
  expect(folder).toStartWith(here.path)
  expect(here.left()).toEqual([])
  expect(processesOf(here.path)).toEqual([])
  expect(fetch(url)).rejects.toThrow()
})

test('the command finds the executable that runs it, which from source is none', async () => {
  using here = place()
  const env = { BERTH_EXECUTABLE: '/given/by/the/caller' }
  const { stdout } = await here.run(['--', 'sh', '-c', 'printf %s "$BERTH_EXECUTABLE"'], { env })
  expect(stdout).toBe(executable === undefined ? env.BERTH_EXECUTABLE : realpathSync(executable))
})

test('the exit code is the command’s, or what a shell gives', async () => {
  using here = place()
  writeFileSync(join(here.path, 'plain'), 'echo "$1"; exit 5')
  writeFileSync(join(here.path, 'lost'), '#!/no/such/program\n', { mode: 0o755 })
  const codes = async (...args: string[]) => {
    const { exitCode, stdout, stderr } = await here.run(args)
    return { exitCode, stdout, lines: stderr.trimEnd().split('\n').filter(Boolean) }
  }
  expect(await codes('--', 'true')).toEqual({ exitCode: 0, stdout: '', lines: [] })
  expect(await codes('--', 'sh', '-c', 'exit 3')).toEqual({
    exitCode: 3,
    stdout: '',
    lines: [expect.stringMatching(/^berth: sh ended with 3\. .*--keep/)],
  })
  expect(await codes('--', 'sh', '-c', 'kill -9 $$')).toMatchObject({ exitCode: 137 })
  expect(await codes('--', 'no-such-program')).toMatchObject({
    exitCode: 127,
    lines: [expect.stringContaining('PATH')],
  })
  expect(await codes('--', './none')).toMatchObject({ exitCode: 127, lines: [expect.any(String)] })
  expect(await codes('--', './plain')).toMatchObject({
    exitCode: 126,
    lines: [expect.stringContaining('chmod')],
  })
  expect(await codes('--', here.path)).toMatchObject({
    exitCode: 126,
    lines: [expect.stringContaining('directory')],
  })
  expect(await codes('--', './lost')).toMatchObject({
    exitCode: 126,
    lines: [expect.stringContaining('first line')],
  })
  chmodSync(join(here.path, 'plain'), 0o755)
  expect(await codes('--', './plain', 'said')).toMatchObject({ exitCode: 5, stdout: 'said\n' })
  expect(await codes()).toMatchObject({ exitCode: 2, lines: [expect.stringContaining('behind "--"')] })
  expect(await codes('--prot', '1', '--', 'true')).toMatchObject({ exitCode: 2 })
  expect(await codes('--config', 'none.json', '--', 'true')).toMatchObject({ exitCode: 1 })
  expect(await codes('--keep', '--isolation', 'x', '--', 'true')).toMatchObject({ exitCode: 2 })
  expect(await codes('--coverage', 'no/such/folder.json', '--', 'true')).toMatchObject({ exitCode: 1 })
  expect(here.left()).toEqual([])
})

test('a signal to berth alone reaches the command, once each', async () => {
  using here = place()
  const child = Bun.spawn(['setsid', '-w', ...berthCommand, 'run', '--', ...hearer], {
    cwd: here.path,
    env: { PATH: process.env.PATH ?? '', ...here.env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let heard = ''
  const said = (async () => {
    for await (const text of child.stdout.pipeThrough(new TextDecoderStream())) heard += text
  })()
  await until(() => heard === 'ready\n', 'the command is up')
  const { pid } = JSON.parse(readFileSync(instanceFile(here.path), 'utf8'))
  let expected = 'ready\n'
  for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT', 'SIGUSR1'] as const) {
    for (let time = 0; time < 2; time += 1) {
      process.kill(pid, name)
      expected += `${name}\n`
      await until(() => heard.length >= expected.length, `${name} is heard`)
    }
  }
  process.kill(pid, 'SIGUSR2')
  await said
  expect(heard).toBe(expected)
  expect(await child.exited).toBe(7)
  expect(here.left()).toEqual([])
})

test('on a terminal Ctrl-C reaches the command once, and Ctrl-Z and fg stop and continue the job', async () => {
  using here = place()
  await using shell = onTerminal(['bash', '--noprofile', '--norc', '-i'], {
    cwd: here.path,
    env: { ...here.env, PS1: '> ' },
  })
  writeFileSync(join(here.path, 'hearer.ts'), HEARER)
  shell.type(`${berth} run -- ${shellQuote([process.execPath, 'hearer.ts'])}; echo "code"=$?\n`)
  await shell.shows('ready\r\n')
  const { pid } = JSON.parse(readFileSync(instanceFile(here.path), 'utf8'))
  shell.type('\x03')
  await shell.shows('SIGINT\r\n')
  shell.type('\x1a')
  await shell.shows('Stopped')
  shell.type('fg\n')
  // The command prints again: it was continued.
  process.kill(pid, 'SIGTERM')
  await shell.shows('SIGTERM\r\n')
  shell.type('\x03')
  await shell.shows(/SIGINT[\s\S]*SIGINT/)
  process.kill(pid, 'SIGUSR2')
  await until(() => here.left().length === 0, 'it is over')
  expect(shell.output().match(/SIGINT/g)?.length).toBe(2)
  expect(shell.output().match(/SIGTERM/g)?.length).toBe(1)
})

test('a signal that was ignored at the start, as by nohup, stays ignored for the command', async () => {
  using here = place()
  const script = `trap '' HUP; exec ${berth} run -- sh -c 'kill -HUP $$ $PPID; echo alive'`
  const child = Bun.spawn(['sh', '-c', script], {
    cwd: here.path,
    env: { PATH: process.env.PATH ?? '', ...here.env },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  expect(await child.stdout.text()).toBe('alive\n')
  expect(await child.exited).toBe(0)
})

test('reports a config file that was just found and ends isolation', async () => {
  using here = place()
  writeFileSync(join(here.path, 'berth.config.json'), JSON.stringify({ isolation: 'none' }))
  const { exitCode, stderr } = await here.run(['--', 'true'])
  expect(exitCode).toBe(0)
  expect(stderr).toContain(
    `${join(here.path, 'berth.config.json')} was found here and sets "isolation" to "none"`,
  )
  expect((await here.run(['--isolation', 'none', '--', 'true'])).stderr).toBe('')
})

test('instances side by side have ports of their own, whatever the environment and the config file say', async () => {
  using here = place()
  await using other = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: () => new Response() })
  writeFileSync(
    join(here.path, 'berth.config.json'),
    JSON.stringify({
      port: other.port,
      data: 'kept',
      // Nobody can listen there (RFC 5737).
      host: '192.0.2.1',
      'project-ports': '4800-4801',
      'public-host': 'from.file',
    }),
  )
  // Each brings a site up and waits until all have: only then do they end.
  const script = `${berth} servers create >/dev/null && ${berth} projects create --template static-site --public >url.$$ 2>&1 && mv url.$$ done.$$ && while [ $(ls done.* | wc -l) -lt 3 ]; do sleep 0.05; done; grep -o 'http://127[^ ]*' done.$$; curl -s -o /dev/null -w '%{http_code}\n' -H 'Host: from.file' "$BERTH_BASE_URL/openapi.json"`
  const outcomes = await Promise.all(
    [1, 2, 3].map(() => here.run(['--', 'sh', '-c', script], { env: { BERTH_PORT: String(other.port) } })),
  )
  const urls = outcomes.map(({ stdout }) => stdout.split('\n')[0])
  expect(outcomes.map(({ exitCode, stderr }) => ({ exitCode, stderr }))).toEqual(
    outcomes.map(() => ({ exitCode: 0, stderr: '' })),
  )
  expect(new Set(urls).size).toBe(3)
  for (const { stdout } of outcomes) expect(stdout).toEndWith('200\n')
  expect(existsSync(join(here.path, 'kept'))).toBe(false)
  expect(here.left()).toEqual([])
})

test('--keep leaves the folder with its log, --data a folder of one’s own; the options of serve hold', async () => {
  using here = place()
  writeFileSync(
    join(here.path, 'fixtures.yaml'),
    'scenarios:\n  - match: hello\n    steps:\n      - complete: from the file\n',
  )
  const script = `${berth} servers create >/dev/null && ${berth} tasks run hello`
  const kept = await here.run([
    '--keep',
    '--fixtures',
    'fixtures.yaml',
    '--log-level=debug',
    '--',
    'sh',
    '-c',
    script,
  ])
  expect(kept).toMatchObject({ exitCode: 0, stdout: 'from the file\n' })
  const [, folder = '', log = ''] = /^berth: (\S+) has the data, (\S+) the log\.$/m.exec(kept.stderr) ?? []
  expect(readFileSync(log, 'utf8')).toContain('/tasks')
  expect(existsSync(join(folder, 'berth.db'))).toBe(true)
  // It is not taken for one that was left behind.
  expect(await here.run(['--', 'true'])).toMatchObject({ exitCode: 0 })
  expect(existsSync(join(folder, 'berth.db'))).toBe(true)

  const again = await here.run(['--data', folder, '--', 'sh', '-c', `${berth} servers list --json`])
  expect(JSON.parse(again.stdout).servers.length).toBe(1)
  expect(again.stderr).toContain(folder)
})

test('--coverage shows which operations and documented statuses were reached, and which never', async () => {
  using here = place()
  const script = `${berth} servers create >/dev/null; ${berth} servers create >/dev/null; ${berth} exec srv_none true; curl -s "$BERTH_BASE_URL/servers" "$BERTH_BASE_URL/nowhere" "$BERTH_BASE_URL/_berth/health" >/dev/null; exit 0`
  const { exitCode, stderr } = await here.run(['--coverage', 'coverage.json', '--', 'sh', '-c', script])
  expect(exitCode).toBe(0)
  const report = JSON.parse(readFileSync(join(here.path, 'coverage.json'), 'utf8'))
  const byId = (id: string) =>
    report.operations.find(({ operation }: { operation: string }) => operation === id)
  expect(byId('servers.create')).toMatchObject({
    method: 'POST',
    path: '/servers',
    requests: 2,
    statuses: { 201: 2 },
  })
  expect(byId('servers.create').missing).toEqual(expect.arrayContaining([400, 401, 403]))
  expect(byId('servers.list')).toMatchObject({
    // One by curl, one by which exec looks for a server of that name, and one after each server that is made: for its label.
    requests: 4,
    statuses: { 200: 3, 401: 1 },
    missing: expect.arrayContaining([503]),
  })
  // The name may be a project's, too.
  expect(byId('projects.listAll')).toMatchObject({ requests: 1, statuses: { 200: 1 } })
  expect(byId('exec.run')).toMatchObject({ requests: 1, statuses: { 404: 1 }, undocumented: [] })
  expect(report.unmatched).toEqual({ 404: 1 })
  expect(report.never_called).toContain('webhooks.create')
  expect(report.never_called).not.toContain('exec.run')
  expect(report.summary.operations).toEqual({ reached: 4, documented: report.operations.length })
  expect(report.summary.statuses.reached).toBe(5)
  expect(stderr).toContain(`reached 4 of ${report.operations.length} operations and 5 of `)
})

test('where the coverage cannot be written any more nothing is left behind, and the command’s failure counts', async () => {
  using here = place()
  for (const [code, expected] of [
    [0, 1],
    [7, 7],
  ]) {
    mkdirSync(join(here.path, 'reports'))
    const args = ['--coverage', 'reports/coverage.json', '--', 'sh', '-c', `rm -r reports; exit ${code}`]
    const { exitCode, stderr } = await here.run(args)
    expect(exitCode).toBe(expected as number)
    expect(stderr).toContain('The coverage cannot be written: ')
    expect(here.left()).toEqual([])
  }
})

test('runs without a writable home; reports a temporary directory that cannot be made', async () => {
  using here = place()
  // Nothing can be made below a file, by root neither.
  const env = { XDG_STATE_HOME: '/dev/null' }
  expect(await here.run(['--', 'true'], { env })).toMatchObject({ exitCode: 0, stderr: '' })
  const list = await run(['list'], { env })
  expect({ exitCode: list.exitCode, stderr: list.stderr }).toEqual({ exitCode: 0, stderr: '' })
  for (const keep of [[], ['--keep']]) {
    const { exitCode, stderr } = await here.run([...keep, '--', 'true'], { env: { TMPDIR: '/dev/null' } })
    expect(exitCode).toBe(1)
    expect(stderr).toMatch(/^berth: No temporary directory can be made: .+ Set TMPDIR to .+\n$/)
  }
})

test('what an instance that was killed left is gone with the next, at once; its sandboxes end with it, the command lives on', async () => {
  using here = place()
  const child = here.start([
    '--',
    'sh',
    '-c',
    `${berth} exec $(${berth} servers create --json | grep -o 'srv_[a-z0-9]*') 'sleep 61 & echo'; echo $$; exec sleep 60`,
  ])
  const lines = linesOf(child.stdout)
  const pid = Number(await lines(2))
  try {
    expect(processesOf(here.path).join()).toContain('sleep 61')
    expect(here.left().length).toBe(2)
    child.kill('SIGKILL')
    await child.exited
    await until(() => processesOf(here.path).length === 1, 'nothing of the instance runs')
    expect(readProcess(pid)).not.toBeNull()
    expect(await here.run(['--', 'true'])).toMatchObject({ exitCode: 0 })
    expect(here.left()).toEqual([])
  } finally {
    process.kill(pid, 'SIGKILL')
  }
})

test('runs that end at once clear away the same leftovers, and each ends with its own command’s code', async () => {
  using here = place()
  const mark = ownMark()
  if (mark === null) throw new Error('no /proc')
  // No process has started in the tick 1 since the machine did.
  const dead = `berth-ephemeral-${markText({ ...mark, start: '1' })}`
  const command = ['sh', '-c', 'touch "ready-$$"; while ! test -e go; do sleep 0.01; done']
  const runs = [0, 1, 2, 3].map(() => here.run(['--', ...command]))
  const ready = () => readdirSync(here.path).filter((name) => name.startsWith('ready-')).length
  await until(() => ready() === runs.length, 'all commands run')
  for (let number = 0; number < 150; number += 1) {
    // Whole at once: on a busy machine a berth may still look for leftovers of before it started.
    const made = join(here.path, 'made')
    mkdirSync(join(made, 'servers'), { recursive: true })
    renameSync(made, join(here.path, `${dead}-${String(number).padStart(6, '0')}`))
  }
  writeFileSync(join(here.path, 'go'), '')
  for (const { exitCode, stderr } of await Promise.all(runs))
    expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' })
  expect(here.left()).toEqual([])
})

/** Reads a stream line by line: gives the line of a number, the first being 1. */
function linesOf(stream: ReadableStream<Uint8Array>): (number: number) => Promise<string> {
  const reader = stream.getReader()
  const decoder = new TextDecoder()
  let text = ''
  return async (number) => {
    while (text.split('\n').length <= number) {
      const { value, done } = await reader.read()
      if (done) throw new Error(`ended after ${JSON.stringify(text)}`)
      text += decoder.decode(value, { stream: true })
    }
    return text.split('\n')[number - 1] ?? ''
  }
}

/** The only instance below a folder. */
function instanceFile(folder: string): string {
  const [name = ''] = readdirSync(folder).filter((entry) => entry.startsWith('berth-'))
  return join(folder, name, 'instance.json')
}
