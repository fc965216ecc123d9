import { expect, test } from 'bun:test'
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { readProcess } from '../../src/compute/processes.ts'
import { processesOf, until } from '../support/processes.ts'
import { receiver } from '../support/receiver.ts'
import { run, start, temporaryFolder } from './command.ts'

/** The program of a test that runs beside the instance. */
const program = (name: string, ...args: string[]): string[] => [
  process.execPath,
  join(import.meta.dir, 'run-report-command.ts'),
  name,
  ...args,
]

/** A directory of the test's own, in which runs have a state directory and nothing of this machine's CI system. */
function place() {
  const folder = temporaryFolder()
  const env = { TMPDIR: folder.path, XDG_STATE_HOME: join(folder.path, 'state'), HOME: folder.path }
  const options = (more: Record<string, string> = {}) => ({ cwd: folder.path, env: { ...env, ...more } })
  return {
    path: folder.path,
    reports: join(folder.path, 'state/berth/reports'),
    run: (args: readonly string[], more?: Record<string, string>) => run(['run', ...args], options(more)),
    berth: (args: readonly string[], more?: Record<string, string>) => run(args, options(more)),
    start: (args: readonly string[]) => start(['run', ...args], options()),
    text: (...path: string[]) => readFileSync(join(folder.path, ...path), 'utf8'),
    // biome-ignore lint/suspicious/noExplicitAny: each file has lines of a shape of its own
    lines: (...path: string[]): any[] =>
      readFileSync(join(folder.path, ...path), 'utf8')
        .split('\n')
        .filter((line) => line !== '')
        .map((line) => JSON.parse(line)),
    [Symbol.dispose]: () => folder[Symbol.dispose](),
  }
}

/** Every file below a directory, relative to it. */
const filesBelow = (directory: string): string[] =>
  readdirSync(directory, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))

const FILES = [
  ...['coverage.json', 'deliveries.jsonl', 'doctor.json', 'events.jsonl', 'findings.jsonl', 'index.html'],
  ...['journal.jsonl', 'junit.xml', 'logs', 'objects.jsonl', 'requests.har', 'summary.md', 'transcripts'],
]

test('a run that fails leaves what happened, also of what was removed and before a reset', async () => {
  using here = place()
  await using hook = await receiver()
  const args = ['--report', 'out', '--allow-local-webhooks', '--journal-size', '2', '--']
  const { exitCode, stderr } = await here.run([...args, ...program('everything', hook.url)])
  expect(exitCode).toBe(3)
  expect(
    readdirSync(join(here.path, 'out'))
      .filter((name) => !name.startsWith('.'))
      .sort(),
  ).toEqual(FILES)
  expect(statSync(join(here.path, 'out')).mode & 0o777).toBe(0o700)

  const requests = here.lines('out/journal.jsonl')
  const operations = requests.map(({ operation, status }) => `${operation} ${status}`)
  expect(operations).toEqual([
    ...['servers.create 201', 'webhooks.create 201', 'tasks.create 201', 'projects.create 201'],
    ...['servers.get 200', 'servers.create 400', 'null 404', 'templates.list 200'],
  ])
  expect(new Set(requests.slice(0, 5).map(({ account_id }) => account_id)).size).toBe(1)
  const har = JSON.parse(here.text('out/requests.har'))
  expect(har.log.entries.length).toBe(requests.length)
  expect(har.log.entries[5].request.postData.text).toBe('{"sise":"small"}')

  const events = here.lines('out/events.jsonl').map(({ event }) => event)
  for (const event of ['server.created', 'task.completed', 'project.ready', 'server.deleted'])
    expect(events).toContain(event)
  expect(here.lines('out/deliveries.jsonl')).toMatchObject([
    { event: 'task.completed', status: 'delivered', attempts: [{ status: 200 }] },
  ])
  const [transcript = ''] = readdirSync(join(here.path, 'out/transcripts'))
  expect(here.text('out/transcripts', transcript)).toContain('from the agent')
  expect(here.text('out/logs/shop.log')).toContain('Copying the template static-site.')
  const objects = here.lines('out/objects.jsonl')
  const states = objects.filter(({ type }) => type === 'server').map(({ value }) => value?.status ?? 'gone')
  expect(states).toContain('running')
  expect(states.at(-1)).toBe('gone')

  const coverage = JSON.parse(here.text('out/coverage.json'))
  expect(coverage.summary.operations.reached).toBe(6)
  expect(coverage.unmatched).toEqual({ 404: 1 })
  expect(JSON.parse(here.text('out/doctor.json')).version).toBeString()
  const summary = here.text('out/summary.md')
  expect(summary).toContain('failed with 3')
  const junit = here.text('out/junit.xml')
  expect(junit).toContain('<testcase classname="berth.operations" name="tasks.create"')
  expect(junit.match(/classname="berth\.deliveries"/g)).toHaveLength(1)
  for (const text of [stderr, summary, junit]) {
    expect(text).toContain('sise')
    expect(text).toContain('/serverz')
    expect(text).toContain('event=task.failed')
  }
  // The fault that never applied was gone with the reset.
  expect(stderr).toContain('faults that never applied:\n  flt_')
  expect(stderr).toContain(
    `bun ended with 3. ${join(here.path, 'out/index.html')} shows what happened.`.slice(4),
  )
})

test('a run that fails leaves what executions, terminals and streams printed, also of those that still ran', async () => {
  using here = place()
  const { stdout } = await here.run(['--report', 'out', '--', ...program('output')])
  const ids = JSON.parse(stdout)
  const log = (id: string) => here.text('out/logs', `${id}.log`)
  expect(log(ids.ended).split('\n').sort()).toEqual(['', 'from the execution', 'to stderr'])
  expect(log(ids.running)).toBe('still there\n')
  expect(log(ids.terminal)).toBe('red\n')
  expect(log(ids.stream)).toBe('streamed\n')
  const much = log(ids.much)
  expect(much).toStartWith('first\n1\n2\n')
  expect(much).toMatch(/\n\d+\n\[\d+ bytes are left out\]\n\d+\n/)
  expect(much).toEndWith('\n100000\nlast\n')
  expect(much.length).toBeLessThan(130 * 1024)
  expect(here.text('out/index.html')).toContain('from the execution')
})

test('a run at a desk leaves a report if it fails, and nothing if it passes; in CI it leaves one in berth-report', async () => {
  using here = place()
  const green = await here.run(['--', 'true'])
  expect({ exitCode: green.exitCode, stderr: green.stderr }).toEqual({ exitCode: 0, stderr: '' })
  expect(readdirSync(here.reports)).toEqual([])
  const red = await here.run(['--', 'false'])
  const [name = ''] = readdirSync(here.reports)
  expect(red.exitCode).toBe(1)
  expect(red.stderr).toContain(join(here.reports, name, 'index.html'))
  expect((await here.run(['--no-report', '--', 'false'])).stderr).not.toContain('index.html')
  expect(readdirSync(here.reports)).toEqual([name])

  const summary = join(here.path, 'step-summary')
  const ci = { CI: 'true', GITHUB_STEP_SUMMARY: summary }
  expect(await here.run(['--', 'true'], ci)).toMatchObject({ exitCode: 0, stderr: '' })
  expect(existsSync(join(here.path, 'berth-report/index.html'))).toBe(true)
  expect(readFileSync(summary, 'utf8')).toContain('berth run: passed')

  // Without a browser the path is printed: of the report in the working directory, else of the last that failed.
  expect((await here.berth(['report'])).stdout).toBe(`${join(here.path, 'berth-report/index.html')}\n`)
  const named = await here.berth(['report', join(here.reports, name)])
  expect(named.stdout).toBe(`${join(here.reports, name, 'index.html')}\n`)
  const none = await here.berth(['report', here.path])
  expect(none.exitCode).toBe(1)
  expect(none.stderr).toContain('is not a report')
})

test('only a report of berth is replaced', async () => {
  using here = place()
  mkdirSync(join(here.path, 'berth-report'))
  writeFileSync(join(here.path, 'berth-report/mine'), 'x')
  const refused = await here.run(['--report', 'berth-report', '--', 'touch', 'ran'])
  expect(refused.exitCode).toBe(1)
  expect(refused.stderr).toContain('has files')
  expect(existsSync(join(here.path, 'ran'))).toBe(false)
  // Nobody asked for that one: the run goes on.
  const { exitCode, stderr } = await here.run(['--', 'true'], { CI: '1' })
  expect(exitCode).toBe(0)
  expect(stderr).toContain('berth-report has files')
  expect(readdirSync(join(here.path, 'berth-report'))).toEqual(['mine'])

  await here.run(['--report', 'out', '--', ...program('show', 'first')])
  await here.run(['--report', 'out', '--', ...program('show', 'second')])
  const shown = here.text('out/journal.jsonl')
  expect([shown.includes('first'), shown.includes('second')]).toEqual([false, true])
})

test('--strict and --coverage-min make a run of exit code 0 fail, --timeout ends it with its processes', async () => {
  using here = place()
  const curl = (path: string) =>
    `curl -s -o /dev/null -H "Authorization: Bearer $BERTH_API_KEY" "$BERTH_BASE_URL${path}"`
  const strict = (script: string) => here.run(['--strict', '--no-report', '--', 'sh', '-c', script])
  expect(await strict(curl('/servers'))).toMatchObject({ exitCode: 0, stderr: '' })
  const missed = await strict(`${curl('/serverz')}; ${curl('/servers?colour=red')}`)
  expect(missed.exitCode).toBe(1)
  expect(missed.stderr).toContain('near misses, which --strict refuses:')
  expect(missed.stderr).toContain('GET /serverz')
  expect(missed.stderr).toContain('query "colour"')
  expect(missed.stderr).toContain('sh ended with 0, and the run with 1.')

  const least = (percent: string) =>
    here.run(['--coverage-min', percent, '--no-report', '--', 'sh', '-c', curl('/servers')])
  expect(await least('1')).toMatchObject({ exitCode: 0, stderr: '' })
  const few = await least('50')
  expect(few.exitCode).toBe(1)
  expect(few.stderr).toMatch(
    /1 of \d+ operations had a success, which is [\d.]+ %: less than --coverage-min 50/,
  )
  expect((await least('many')).exitCode).toBe(2)

  // It ignores SIGTERM, and has a child in a session of its own.
  const script = `trap '' TERM; setsid sleep 300 & echo $! >child; sleep 300`
  const hung = await here.run(['--timeout', '1s', '--no-report', '--', 'sh', '-c', script])
  expect(hung.exitCode).toBe(124)
  expect(hung.stderr).toContain('did not end within 1s')
  expect(readProcess(Number(here.text('child')))).toBeNull()
  expect((await here.run(['--timeout', 'soon', '--', 'true'])).exitCode).toBe(2)
})

test('what a command leaves running is ended and named, but with --leave', async () => {
  using here = place()
  const script = 'setsid sleep 301 >/dev/null 2>&1 & echo $! >child'
  const { exitCode, stderr } = await here.run(['--', 'sh', '-c', script])
  const child = here.text('child').trim()
  expect(exitCode).toBe(0)
  expect(stderr).toContain(` (pid ${child})`)
  expect(readProcess(Number(child))).toBeNull()
  expect(await here.run(['--leave', '--', 'sh', '-c', script])).toMatchObject({ exitCode: 0, stderr: '' })
  const left = Number(here.text('child'))
  expect(readProcess(left)).not.toBeNull()
  process.kill(left, 'SIGKILL')
})

test('runs at the same time share a report and a file of coverage', async () => {
  using here = place()
  const args = ['--report', 'out', '--coverage', 'coverage.json', '--junit', 'junit.xml', '--', 'sh', '-c']
  const path = ['servers', 'templates', 'keys']
  const outcomes = await Promise.all(
    path.map((one) => {
      // Each ends only when all have begun.
      const script = `touch begun-${one}; while [ $(ls begun-* | wc -l) -lt 3 ]; do sleep 0.05; done; curl -s -o /dev/null -H "Authorization: Bearer $BERTH_API_KEY" "$BERTH_BASE_URL/${one}"`
      return here.run([...args, script])
    }),
  )
  expect(outcomes.map(({ exitCode }) => exitCode)).toEqual([0, 0, 0])
  for (const file of ['out/coverage.json', 'coverage.json']) {
    const { summary, operations } = JSON.parse(here.text(file))
    expect(summary.operations.reached).toBe(3)
    const requests = operations.map((one: { requests: number }) => one.requests)
    expect(requests.filter((count: number) => count > 0)).toEqual([1, 1, 1])
  }
  expect(here.lines('out/journal.jsonl').length).toBe(3)
  expect(here.text('out/summary.md').match(/ended with 0/g)).toHaveLength(3)
  expect(here.text('junit.xml')).toContain('name="templates.list"')
  // The next run is alone, and begins anew.
  await here.run([...args, 'true'])
  expect(JSON.parse(here.text('coverage.json')).summary.operations.reached).toBe(0)
  expect(existsSync(join(here.path, 'out/journal.jsonl'))).toBe(false)
})

test('a run that is killed leaves whole lines, of which a report is made', async () => {
  using here = place()
  const loop = `while :; do curl -s -o /dev/null -H "Authorization: Bearer $BERTH_API_KEY" "$BERTH_BASE_URL/servers"; echo $$ >pid; done`
  const child = here.start(['--report', 'out', '--', 'sh', '-c', loop])
  const journal = join(here.path, 'out/journal.jsonl')
  await until(() => existsSync(journal) && here.lines('out/journal.jsonl').length > 3, 'lines are there')
  child.kill('SIGKILL')
  await child.exited
  process.kill(Number(here.text('pid')), 'SIGKILL')
  await until(() => processesOf(here.path).length === 0, 'nothing of the run writes any more')
  expect(readFileSync(journal, 'utf8')).toEndWith('\n')
  const count = here.lines('out/journal.jsonl').length
  const opened = await here.berth(['report', 'out'])
  expect(opened.stdout).toBe(`${join(here.path, 'out/index.html')}\n`)
  expect(here.text('out/index.html')).toContain('A run that was killed')
  expect(JSON.parse(here.text('out/requests.har')).log.entries.length).toBe(count)
})

test('no file of a report has a secret of any kind, in any form', async () => {
  using here = place()
  await using hook = await receiver()
  const { stderr } = await here.run([
    ...['--report', 'out', '--allow-local-webhooks', '--outbound', 'none', '--'],
    ...program('secrets', join(here.path, 'planted.json'), hook.url),
  ])
  if (!existsSync(join(here.path, 'planted.json'))) throw new Error(stderr)
  const planted: string[] = JSON.parse(here.text('planted.json'))
  expect(planted.length).toBeGreaterThan(10)
  const forms = planted.flatMap((secret) => [
    secret,
    Buffer.from(secret).toString('base64').replace(/=+$/, ''),
    encodeURIComponent(secret),
    JSON.stringify(secret).slice(1, -1),
  ])
  const found = filesBelow(join(here.path, 'out')).flatMap((file) => {
    const text = readFileSync(file, 'utf8')
    return forms.filter((form) => text.includes(form)).map((form) => `${file}: ${form}`)
  })
  expect(found).toEqual([])
  expect(here.text('out/logs/printing.log')).toContain('OF_PROJECT=***')
  const logs = filesBelow(join(here.path, 'out/logs')).map((file) => readFileSync(file, 'utf8'))
  expect(logs.some((text) => text.includes(": '***'") && text.includes('typed 0'))).toBe(true)
  expect(stderr).not.toContain('sk_live_0')
})
