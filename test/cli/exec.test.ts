import { expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { encodeFrame, FRAME_KINDS, FRAMES_TYPE } from '../../src/resources/exec/frames.ts'
import { until } from '../support/processes.ts'
import { command as berthCommand } from '../support/serve.ts'
import { run, serve, serveForTests, start } from './command.ts'

let server: string
const berth = await serveForTests()
server = await berth.server()

const exec = (...args: string[]) => berth.run(['exec', server, ...args])

test("the command's output goes to the same streams and its code is the exit code", async () => {
  const { exitCode, stdout, stderr } = await exec('echo out; echo err >&2; exit 7')
  expect({ exitCode, stdout, stderr }).toEqual({ exitCode: 7, stdout: 'out\n', stderr: 'err\n' })
})

test('several words arrive as they were given, one word is shell text', async () => {
  const words = ['two  words', "it's", '$HOME', '*', '', '-n', 'a\\b', '"', 'new\nline']
  const { stdout } = await exec('--', 'printf', '<%s>', ...words)
  expect(stdout).toBe(words.map((word) => `<${word}>`).join(''))
  expect((await exec('--', 'echo a | tr a b')).stdout).toBe('b\n')
})

test("an option that exec does not know is the command's own", async () => {
  for (const words of [[server], ['--server', server], []]) {
    const { stdout, stderr } = await berth.run(['exec', ...words, 'echo', '-la', '--json'])
    expect({ stdout, stderr }).toEqual({ stdout: '-la --json\n', stderr: '' })
  }
})

test('distinguishes a server without a command from a command without a server', async () => {
  await using other = await serve()
  await other.run(['servers', 'create', 'web'])
  await other.run(['servers', 'create', 'docs'])
  const missing = await other.run(['exec', 'web'])
  expect({ code: missing.exitCode, text: missing.stderr }).toEqual({
    code: 2,
    text: expect.stringContaining('"web" is a server, and the command is missing: berth exec web -- COMMAND'),
  })
  expect((await other.run(['exec', 'ls'])).stderr).toContain('There are 2 servers')
})

test('bytes that are not text come through unchanged', async () => {
  const { bytes } = await exec("printf '\\377\\000\\342\\202'; printf '\\254\\n'")
  expect([...bytes]).toEqual([0xff, 0, 0xe2, 0x82, 0xac, 0x0a])
})

test('output arrives while the command still runs', async () => {
  const child = start(['exec', server, 'echo first; cat /dev/zero | head -c 1 >/dev/null; sleep 60'], {
    cwd: berth.cwd,
  })
  const { value } = await child.stdout.getReader().read()
  expect(new TextDecoder().decode(value)).toBe('first\n')
  child.kill('SIGINT')
  expect(await child.exited).toBe(130)
})

test.each([
  ['SIGINT', 130],
  ['SIGTERM', 143],
] as const)('%s ends the command on the server', async (signal, code) => {
  const child = start(['exec', server, 'echo ready; exec sleep 61.25'], { cwd: berth.cwd })
  await child.stdout.getReader().read()
  const runs = async () =>
    (
      await exec(
        `for f in /proc/[0-9]*/cmdline; do tr '\\0' ' ' < $f 2>/dev/null; echo; done | grep -c '^sleep 61.25'`,
      )
    ).stdout.trim()
  await until(async () => (await runs()) === '1', 'the command runs')
  child.kill(signal)
  expect(await child.exited).toBe(code)
  await until(async () => (await runs()) === '0', 'the command ended')
})

test('a command that runs out of time exits with 124 and says so', async () => {
  const { exitCode, stdout, stderr } = await exec('--timeout', '200ms', 'echo begun; sleep 60')
  expect({ exitCode, stdout, stderr }).toEqual({
    exitCode: 124,
    stdout: 'begun\n',
    stderr: 'berth: the command ran out of time and was ended\n',
  })
})

test('folder and variables reach the command', async () => {
  await exec('mkdir -p sub')
  const { stdout } = await exec(
    '--cwd',
    'sub',
    '--env',
    'A=1',
    '--env',
    'B=x=y z',
    'basename "$PWD"; echo "$A,$B"',
  )
  expect(stdout).toBe('sub\n1,x=y z\n')
})

test('standard input is handed on with -i only', async () => {
  const stdin = new TextEncoder().encode('\ufeffa line\nno newline at the end: ö')
  const given = await berth.run(['exec', server, '-i', '--', 'cat'], { stdin })
  expect(given.bytes).toEqual(stdin)
  expect((await berth.run(['exec', server, '--', 'cat'], { stdin })).stdout).toBe('')
  const bytes = new Uint8Array([0xff, 0, 0xfe])
  expect((await berth.run(['exec', server, '-i', '--', 'cat'], { stdin: bytes })).bytes).toEqual(bytes)
})

test('-i takes folder, variables and --json as without it, and refuses a command too long for a URL', async () => {
  await exec('mkdir -p sub')
  const stdin = Buffer.from('in')
  const words = [
    'exec',
    server,
    '-i',
    '--cwd',
    'sub',
    '--env',
    "A=it's",
    '--json',
    'basename "$PWD"; cat; echo "$A"',
  ]
  const { stdout, exitCode } = await berth.run(words, { stdin })
  expect(exitCode).toBe(0)
  expect(JSON.parse(stdout)).toMatchObject({ stdout: "sub\ninit's\n", exitCode: 0 })
  const long = await berth.run(['exec', server, '-i', '--', `true ${'x'.repeat(20_000)}`], { stdin })
  expect(long.exitCode).toBe(2)
  expect(long.stderr).toContain('berth files write')
})

test('with -i a command answers each line as it comes, and sees the end', async () => {
  const child = Bun.spawn([...berthCommand, 'exec', server, '-i', '--', 'sed -u "s/^/got /"; echo end'], {
    cwd: berth.cwd,
    stdin: 'pipe',
    stdout: 'pipe',
    stderr: 'inherit',
  })
  const reader = child.stdout.getReader()
  for (const word of ['one', 'two']) {
    child.stdin.write(`${word}\n`)
    await child.stdin.flush()
    expect(new TextDecoder().decode((await reader.read()).value)).toBe(`got ${word}\n`)
  }
  await child.stdin.end()
  expect(new TextDecoder().decode((await reader.read()).value)).toBe('end\n')
  expect(await child.exited).toBe(0)
})

test('with -i the end of the command ends all, whatever is still to be read', async () => {
  const script = '"$@"; echo "code $?" >&2'
  const words = [
    'sh',
    '-c',
    `yes | ${script}`,
    'sh',
    ...berthCommand,
    'exec',
    server,
    '-i',
    '--',
    'head -n 1; exit 7',
  ]
  const child = Bun.spawn(words, { cwd: berth.cwd, stdin: 'ignore', stdout: 'pipe', stderr: 'pipe' })
  expect(await child.stdout.text()).toBe('y\n')
  expect(await child.stderr.text()).toBe('code 7\n')
})

test('--json prints the whole result, a byte order mark included, and keeps the exit code', async () => {
  const { exitCode, stdout } = await exec('--json', "printf '\\357\\273\\277out\\n'; echo err >&2; exit 3")
  expect(exitCode).toBe(3)
  expect(JSON.parse(stdout)).toEqual({
    stdout: '\ufeffout\n',
    stderr: 'err\n',
    exitCode: 3,
    timedOut: false,
    truncated: false,
  })
})

test('a reader that goes away ends the command without a complaint', async () => {
  const child = Bun.spawn(['sh', '-c', '"$@" | head -n 1', 'sh', ...berthCommand, 'exec', server, 'yes'], {
    cwd: berth.cwd,
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'pipe',
  })
  expect(await child.stdout.text()).toBe('y\n')
  expect(await child.stderr.text()).toBe('')
})

test('an unknown server is an error of berth, not of the command', async () => {
  const { exitCode, stderr } = await berth.run(['exec', 'srv_none', '--', 'true'])
  expect(exitCode).toBe(1)
  expect(stderr).toMatch(/^berth: .+ \(not_found\)\n$/)
})

/** An id that is not looked up. */
const WHOLE_ID = 'srv_01m82ycb03gefhdnmtqgq5h7z7'

/** What `berth exec` makes of a stream with these frames. */
async function streamed(...frames: [kind: keyof typeof FRAME_KINDS, payload: string][]) {
  const bytes = frames.map(([kind, payload]) => encodeFrame(FRAME_KINDS[kind], Buffer.from(payload)))
  await using instance = Bun.serve({
    port: 0,
    fetch: () => new Response(Buffer.concat(bytes), { headers: { 'content-type': FRAMES_TYPE } }),
  })
  const connection = ['--base-url', instance.url.href, '--api-key', 'sk_live_x']
  return await run(['exec', WHOLE_ID, ...connection, '--', 'true'])
}

test('reports a failure after the output began with its code', async () => {
  const outcome = await streamed(
    ['stdout', 'begun\n'],
    ['error', '{"error":"compute_backend_error","message":"The sandbox is gone."}'],
  )
  expect(outcome).toMatchObject({
    exitCode: 1,
    stdout: 'begun\n',
    stderr: 'berth: The sandbox is gone. (compute_backend_error)\n',
  })
})

test('a stream that ends without the end of the command is a failure', async () => {
  const { exitCode, stderr } = await streamed(['stdout', 'begun\n'])
  expect(exitCode).toBe(1)
  expect(stderr).toStartWith('berth: The connection closed before the command ended.')
})

test('reports a stop of berth that ends a command or a followed log', async () => {
  await using own = await serve()
  const server = await own.server()
  writeFileSync(join(own.cwd, 'index.html'), 'one')
  await own.run(['deploy', '.'])
  const followers = [
    start(['exec', server, '--', 'echo begun; sleep 600'], { cwd: own.cwd }),
    start(['deployments', 'logs', '-f'], { cwd: own.cwd }),
  ]
  const said = followers.map(({ stderr }) => stderr.text())
  await Promise.all(followers.map(async ({ stdout }) => stdout.getReader().read()))
  own.child.kill('SIGTERM')
  const [command, log] = await Promise.all(followers.map(({ exited }) => exited))
  expect(command).toBeGreaterThan(128)
  expect(log).toBe(1)
  const stopped = `instance at ${own.info.base_url} has stopped`
  expect(await Promise.all(said)).toEqual([
    `berth: the ${stopped}, which ended the command\n`,
    `berth: The ${stopped}, so the log ends here. Start it with "berth serve", and follow again.\n`,
  ])
})
