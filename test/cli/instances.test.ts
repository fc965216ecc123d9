import { expect, test } from 'bun:test'
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { type InstanceVariables, shellText } from '../../src/cli/instances/variables.ts'
import { readProcess } from '../../src/compute/processes.ts'
import { asUser, whyNoOrdinaryUser } from '../support/ordinary-user.ts'
import { processesOf, until } from '../support/processes.ts'
import { command as berthCommand } from '../support/serve.ts'
import { bareEnvironment, type Outcome, run, serve, start, temporaryFolder } from './command.ts'
import { onTerminal } from './terminal.ts'

/** A folder with work trees in it, and a list of instances of its own. Ends what was started there. */
function place() {
  const folder = temporaryFolder()
  const env = { XDG_STATE_HOME: join(folder.path, 'state'), TMPDIR: folder.path }
  const berth = (
    tree: string,
    args: readonly string[],
    more: Record<string, string> = {},
  ): Promise<Outcome> => {
    mkdirSync(join(folder.path, tree), { recursive: true })
    return run(args, { cwd: join(folder.path, tree), env: { ...env, ...more } })
  }
  return {
    path: folder.path,
    env,
    berth,
    entries: () =>
      readdirSync(join(folder.path, 'state/berth/instances')).filter((name) => name.endsWith('.json')),
    async list() {
      const { stdout } = await berth('', ['list', '--json'])
      return JSON.parse(stdout).instances as {
        data_dir: string
        pid: number
        base_url: string
        started_by: string
      }[]
    },
    async [Symbol.asyncDispose]() {
      await berth('', ['stop', '--all', '--force', '--timeout', '5s'])
      await until(() => processesOf(folder.path).length === 0, 'no process is left')
      folder[Symbol.dispose]()
    },
  }
}

const noOther = process.getuid?.() === 0 ? whyNoOrdinaryUser() : 'only root can be another user'
if (noOther !== null) console.error(`SKIP the directory of another user: ${noOther}`)

/** Whether a process runs; one that has ended may still wait for its parent. */
const runs = (pid: number): boolean => readProcess(pid) !== null

const DETACH = ['serve', '--detach', '--port', '0']

test('an instance in the background outlives its start, is found below its directory, and ends on request', async () => {
  await using here = place()
  const started = await here.berth('tree', [...DETACH, '--json'])
  expect(started).toMatchObject({ exitCode: 0, stderr: '' })
  const info = JSON.parse(started.stdout)
  expect(Object.keys(info).slice(0, 3)).toEqual(['event', 'version', 'pid'])
  expect(info.data_dir).toBe(join(here.path, 'tree/.berth'))
  // Ready to the last: nothing has to be waited for.
  expect((await fetch(`${info.base_url}/_berth/ready`)).status).toBe(200)
  expect(await here.list()).toMatchObject([
    { data_dir: info.data_dir, pid: info.pid, base_url: info.base_url, started_by: 'serve --detach' },
  ])
  expect((await here.berth('tree/below/it', ['servers', 'create'])).exitCode).toBe(0)

  const again = await here.berth('tree', DETACH)
  expect(again).toMatchObject({ exitCode: 1, stdout: '' })
  expect(again.stderr).toMatch(/^berth: .* in use.*\n$/)
  expect(again.stderr).toContain(info.base_url)

  const log = join(info.data_dir, 'berth.log')
  expect(statSync(log).mode & 0o777).toBe(0o600)
  expect(await here.berth('tree/below', ['stop'])).toMatchObject({
    exitCode: 0,
    stdout: `Stopped the berth on ${info.data_dir} (pid ${info.pid}).\n`,
  })
  expect(runs(info.pid)).toBe(false)
  expect(existsSync(join(info.data_dir, 'instance.json'))).toBe(false)
  expect(await here.list()).toEqual([])
  const nothing = await here.berth('tree', ['stop'])
  expect(nothing).toMatchObject({ exitCode: 1, stdout: '' })
  expect(nothing.stderr).toContain(info.data_dir)
})

test('a second instance goes on from a snapshot beside the first, and leaves nothing behind', async () => {
  await using here = place()
  const info = JSON.parse((await here.berth('tree', [...DETACH, '--json'])).stdout)
  await here.berth('tree', ['servers', 'create'])
  const tree = join(here.path, 'tree')
  const [server] = JSON.parse((await here.berth('tree', ['servers', 'list', '--json'])).stdout).servers
  const write = (text: string): Promise<Outcome> =>
    here.berth('tree', ['exec', '-s', server.id, '--', 'sh', '-c', `printf '${text}' > note.txt`])
  await write('as saved')
  await here.berth('tree', ['snapshot', 'save', 'nice'])
  await write('changed since')
  const snapshot = join(info.data_dir, 'snapshots/nice')
  const options = { cwd: tree, env: here.env }
  const before = readdirSync(here.path)
  {
    await using fork = await serve(['--ephemeral', '--snapshot', '.berth/snapshots/nice'], options)
    const { base_url: url, api_key: key, data_dir: copy, sign_in_url: link } = fork.info
    expect([key, url === info.base_url]).toEqual([info.api_key, false])
    const noteOf = async (base: string): Promise<unknown> => {
      const headers = { authorization: `Bearer ${key}` }
      const response = await fetch(`${base}/servers/${server.id}/files?path=note.txt`, { headers })
      return ((await response.json()) as { content: unknown }).content
    }
    expect([await noteOf(url), await noteOf(info.base_url)]).toEqual(['as saved', 'changed since'])
    // The link signs in to the second instance.
    const signedIn = await fetch(link, { redirect: 'manual' })
    expect(signedIn.headers.getSetCookie()[0]).toContain(`_${new URL(url).port}=`)
    await until(async () => (await here.list()).length === 2, 'both are listed')
    await here.berth('tree', ['servers', 'delete', server.id, '--yes', '--base-url', url])
    expect(await noteOf(info.base_url)).toBe('changed since')
    const stopped = await here.berth('tree', ['stop', '--data', copy])
    expect(stopped.exitCode).toBe(0)
    expect(existsSync(copy)).toBe(false)
  }
  expect(readdirSync(here.path)).toEqual(before)
  expect(await here.list()).toMatchObject([{ pid: info.pid }])

  // Only an empty directory is filled, whole or not at all.
  const copiedAway = join(here.path, 'away')
  cpSync(snapshot, copiedAway, { recursive: true })
  for (const [args, why] of [
    [['--snapshot', snapshot], 'is in use'],
    [['--snapshot', join(here.path, 'tree'), '--data', 'new'], 'is not a snapshot'],
    [['--snapshot', `${snapshot}-not`, '--data', 'new'], 'is not a snapshot'],
    [['--snapshot', copiedAway, '--data', 'new'], 'files that it needs from its data directory: master.key'],
  ] as const) {
    const refused = await here.berth('tree', [...DETACH, ...args])
    expect(refused).toMatchObject({ exitCode: 1, stdout: '' })
    expect(refused.stderr).toContain(why)
  }
  expect(existsSync(join(tree, 'new'))).toBe(false)
  // A kept copy goes on by itself.
  const kept = [...DETACH, '--data', 'kept']
  expect((await here.berth('tree', [...kept, '--snapshot', snapshot])).exitCode).toBe(0)
  const again = await here.berth('tree', ['stop', '--data', 'kept'])
  expect(again.exitCode).toBe(0)
  const refused = await here.berth('tree', [...kept, '--snapshot', snapshot])
  expect([refused.exitCode, refused.stderr]).toEqual([1, expect.stringContaining('Leave out --snapshot')])
  expect((await here.berth('tree', kept)).exitCode).toBe(0)
})

test('a start in the background that fails says why, with the exit code of serve', async () => {
  await using here = place()
  await using other = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: () => new Response() })
  const taken = await here.berth('tree', ['serve', '--detach', '--port', String(other.port)])
  expect(taken).toMatchObject({ exitCode: 1, stdout: '' })
  expect(taken.stderr).toMatch(new RegExp(`^berth: .*\\b${other.port}\\b.*--port 0.*\\n$`))
  expect(await here.berth('tree', ['serve', '--detach', '--isolation', 'x'])).toMatchObject({
    exitCode: 2,
    stdout: '',
  })
  writeFileSync(join(here.path, 'tree/bad.yaml'), 'scenarios: 7\n')
  const bad = await here.berth('tree', [...DETACH, '--fixtures', 'bad.yaml'])
  expect(bad).toMatchObject({ exitCode: 1, stdout: '' })
  expect(bad.stderr).toContain('bad.yaml')
  expect(await here.list()).toEqual([])
})

test('the instance says on a terminal’s behalf where it is; what it logs goes to its file', async () => {
  await using here = place()
  const { stdout } = await here.berth('tree', [...DETACH, '--log-level', 'debug'])
  const log = join(here.path, 'tree/.berth/berth.log')
  expect(stdout).toContain(log)
  expect(stdout).toEndWith('Stop with "berth stop".\n')
  await here.berth('tree', ['servers', 'list'])
  expect(readFileSync(log, 'utf8')).toContain('/servers')
  const elsewhere = await here.berth('', [...DETACH, '--data', 'other folder'])
  expect(elsewhere.stdout).toEndWith(`Stop with "berth stop --data '${join(here.path, 'other folder')}'".\n`)
})

test('the list has every instance of the user, and none that was killed', async () => {
  await using here = place()
  const detached = JSON.parse((await here.berth('a', [...DETACH, '--json'])).stdout)
  const ephemeral = JSON.parse((await here.berth('b', [...DETACH, '--json', '--ephemeral'])).stdout)
  await using foreground = await serve([], { env: here.env })
  await here.berth('', ['wait', '--base-url', foreground.info.base_url])
  const running = start(['run', '--', 'sh', '-c', 'echo up; exec sleep 60'], {
    cwd: here.path,
    env: here.env,
  })
  await running.stdout.getReader().read()
  await until(() => here.entries().length === 4, 'all are listed')
  const listed = await here.list()
  expect(listed.map(({ started_by }) => started_by).sort()).toEqual([
    'run',
    'serve',
    'serve --detach',
    'serve --detach',
  ])
  for (const { data_dir } of [detached, ephemeral, foreground.info])
    expect(listed.map((one) => one.data_dir)).toContain(data_dir)
  const table = (await here.berth('', ['list'])).stdout.trimEnd().split('\n')
  expect(table[0]).toMatch(/^DIRECTORY +URL +PID +STARTED +BY$/)
  expect(table.length).toBe(5)

  process.kill(ephemeral.pid, 'SIGKILL')
  running.kill('SIGTERM')
  expect(await running.exited).toBe(143)
  await until(() => !runs(ephemeral.pid), 'the killed one is gone')
  expect((await here.list()).map(({ data_dir }) => data_dir).sort()).toEqual(
    [detached.data_dir, foreground.info.data_dir].sort(),
  )
  // Its folder goes with the next one of its kind.
  expect((await run(['run', '--', 'true'], { env: here.env })).exitCode).toBe(0)
  expect(existsSync(ephemeral.data_dir)).toBe(false)

  const all = await here.berth('', ['stop', '--all', '--yes', '--json'])
  expect(JSON.parse(all.stdout).stopped.length).toBe(2)
  expect((await here.berth('', ['stop', '--all'])).stdout).toBe('No berth runs.\n')
})

test('stop --all does not reach other directories unless somebody agrees', async () => {
  await using here = place()
  const a = JSON.parse((await here.berth('a', [...DETACH, '--json'])).stdout)
  const b = JSON.parse((await here.berth('b', [...DETACH, '--json'])).stdout)
  const refused = await here.berth('a', ['stop', '--all'])
  expect(refused).toMatchObject({ exitCode: 1, stdout: '' })
  expect(refused.stderr).toContain(
    `1 instance outside of the working directory:\n  ${b.data_dir} (pid ${b.pid})`,
  )
  expect(refused.stderr).toContain('--yes')
  expect([a, b].filter(({ pid }) => runs(pid)).length).toBe(2)
  const ask = async (answer: string) => {
    await using terminal = onTerminal([...berthCommand, 'stop', '--all'], {
      cwd: join(here.path, 'a'),
      env: here.env,
    })
    await terminal.shows('2 instances will stop. Go on?')
    for (const { data_dir } of [a, b]) expect(terminal.output()).toContain(data_dir)
    terminal.type(`${answer}\r`)
    return { exitCode: await terminal.exited, output: terminal.output() }
  }
  const no = await ask('n')
  expect([no.exitCode, no.output]).toEqual([1, expect.stringContaining('Nothing was stopped.')])
  expect([a, b].filter(({ pid }) => runs(pid)).length).toBe(2)
  expect((await ask('y')).exitCode).toBe(0)
  expect([a, b].filter(({ pid }) => runs(pid))).toEqual([])
  const c = JSON.parse((await here.berth('b', [...DETACH, '--json'])).stdout)
  expect((await here.berth('a', ['stop', '--all', '--yes'])).stdout).toContain(c.data_dir)
})

test('an instance whose folder was moved or removed is listed and ended all the same', async () => {
  await using here = place()
  const moved = JSON.parse((await here.berth('a', [...DETACH, '--json'])).stdout)
  const removed = JSON.parse((await here.berth('b', [...DETACH, '--json'])).stdout)
  const alone = JSON.parse((await here.berth('c', [...DETACH, '--json'])).stdout)
  renameSync(join(here.path, 'a'), join(here.path, 'moved'))
  rmSync(join(here.path, 'b'), { recursive: true })
  rmSync(join(here.path, 'c'), { recursive: true })
  const folders = (await here.list()).map(({ data_dir, pid }) => `${pid} ${data_dir}`)
  expect(folders.sort()).toEqual(
    [
      `${moved.pid} ${join(here.path, 'moved/.berth')}`,
      `${removed.pid} ${removed.data_dir}`,
      `${alone.pid} ${alone.data_dir}`,
    ].sort(),
  )
  expect((await here.berth('', ['stop', '--data', alone.data_dir])).exitCode).toBe(0)
  const { exitCode, stderr } = await here.berth('', ['stop', '--all'])
  expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' })
  expect([moved, removed, alone].filter(({ pid }) => runs(pid))).toEqual([])
})

test.skipIf(noOther !== null)('of another user’s folder nothing is claimed', async () => {
  await using here = place()
  const data = join(here.path, 'a/.berth')
  mkdirSync(data, { recursive: true, mode: 0o700 })
  for (const folder of [here.path, join(here.path, 'a')]) chmodSync(folder, 0o755)
  for (const verb of ['stop', 'env']) {
    const child = Bun.spawn(asUser([...berthCommand, verb, '--data', data]), {
      cwd: here.path,
      env: bareEnvironment(here.env),
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    const [stdout, stderr] = await Promise.all([child.stdout.text(), child.stderr.text()])
    expect({ verb, stdout, stderr }).toEqual({
      verb,
      stdout: '',
      stderr: `berth: ${data} may not be read by this user. Run as the user that runs berth.\n`,
    })
    expect(await child.exited).toBe(1)
  }
})

test('a pid that another program has is never signalled', async () => {
  await using here = place()
  const { data_dir, pid } = JSON.parse((await here.berth('tree', [...DETACH, '--json'])).stdout)
  process.kill(pid, 'SIGKILL')
  await until(() => !runs(pid), 'it is gone')
  const bystander = Bun.spawn(['sleep', '60'], { stdio: ['ignore', 'ignore', 'ignore'] })
  try {
    // As if the system had given the number to another program.
    for (const file of [
      join(data_dir, 'instance.json'),
      ...here.entries().map((name) => join(here.path, 'state/berth/instances', name)),
    ]) {
      const content = JSON.parse(readFileSync(file, 'utf8'))
      writeFileSync(file, JSON.stringify({ ...content, pid: bystander.pid }))
    }
    expect(await here.berth('tree', ['stop', '--force', '--timeout', '100ms'])).toMatchObject({ exitCode: 1 })
    expect(await here.berth('tree', ['stop', '--all', '--force'])).toMatchObject({ exitCode: 0 })
    expect(await here.berth('tree', ['env'])).toMatchObject({ exitCode: 1, stdout: '' })
    expect(bystander.exitCode).toBeNull()
    expect(bystander.signalCode).toBeNull()
  } finally {
    bystander.kill('SIGKILL')
    await bystander.exited
  }
})

test('stop waits for the given time, kills only on request, and ends a stopped instance', async () => {
  await using here = place()
  const { pid } = JSON.parse((await here.berth('tree', [...DETACH, '--json', '--isolation', 'none'])).stdout)
  const { stdout } = await here.berth('tree', ['servers', 'create', '--json'])
  const { id } = JSON.parse(stdout)
  const exec = start(['exec', id, "trap '' TERM; echo up; while :; do sleep 1; done"], {
    cwd: join(here.path, 'tree'),
    env: here.env,
  })
  await exec.stdout.getReader().read()
  process.kill(pid, 'SIGSTOP')
  // A command that does not heed SIGTERM is given a second; the instance waits for it.
  const tooShort = await here.berth('tree', ['stop', '--timeout', '200ms'])
  expect(tooShort).toMatchObject({ exitCode: 1, stdout: '' })
  expect(tooShort.stderr).toMatch(/^berth: .*has not ended within 0\.2 s.*--force.*\n$/)
  expect(await here.berth('tree', ['stop', '--timeout', '50ms', '--force'])).toMatchObject({ exitCode: 0 })
  await exec.exited
  expect(runs(pid)).toBe(false)
})

test('wait returns when an instance that is yet to be started is ready, and gives up in time', async () => {
  await using here = place()
  const late = await here.berth('tree', ['wait', '--timeout', '100ms'])
  expect(late).toMatchObject({ exitCode: 1, stdout: '' })
  expect(late.stderr).toMatch(/^berth: Not ready within 0\.1 s: no berth runs on .*\n$/)
  const waiting = here.berth('tree', ['wait', '--timeout', '20s'])
  const { base_url } = JSON.parse((await here.berth('tree', [...DETACH, '--json'])).stdout)
  expect(await waiting).toMatchObject({ exitCode: 0, stdout: `${base_url} is ready.\n` })
})

test('wait reports what responds in place of berth, although a later attempt is cut off', async () => {
  await using here = place()
  const { promise: asked, resolve } = Promise.withResolvers<void>()
  const never = new Promise<Response>(() => {})
  let looks = 0
  // The second look waits until the time is over.
  const fetch = (): Response | Promise<Response> => {
    looks += 1
    if (looks === 1) return new Response('<!doctype html>')
    resolve()
    return never
  }
  await using other = Bun.serve({ port: 0, fetch })
  const args = ['wait', '--timeout', '2s', '--base-url', `http://127.0.0.1:${other.port}`]
  const waiting = here.berth('tree', args)
  await asked
  expect((await waiting).stderr).toContain('is not berth')
  await other.stop(true)
})

/** Values with everything that shells give a meaning to. */
const ODD: InstanceVariables = {
  BERTH_BASE_URL: `a'b"c $(touch ran) \`touch ran\` \\ \\' ; * ~ é‘’`,
  BERTH_API_KEY: null,
  BERTH_ADMIN_TOKEN: '$HOME %PATH% !x',
  BERTH_MCP_URL: "''\\\\",
}

/** How each shell evaluates what it is given and prints a variable, and whether it is set. */
const SHELLS: [shell: 'bash' | 'fish' | 'powershell', command: (file: string) => string[]][] = [
  ['bash', (file) => ['bash', '--norc', '-c', `eval "$(cat ${file})"; env -0`]],
  ['bash', (file) => ['sh', '-c', `eval "$(cat ${file})"; env -0`]],
  ['bash', (file) => ['zsh', '-f', '-c', `eval "$(cat ${file})"; env -0`]],
  ['fish', (file) => ['fish', '--no-config', '-c', `cat ${file} | source; env -0`]],
  [
    'powershell',
    (file) => ['pwsh', '-NoProfile', '-c', `Get-Content -Raw ${file} | Invoke-Expression; env -0`],
  ],
]

for (const [shell, command] of SHELLS) {
  const [program = ''] = command('')
  const found = Bun.which(program)
  const name = `what env prints means the same to a real ${program}, and runs nothing`
  test.skipIf(!found)(found ? name : `${name} (SKIP: ${program} is not installed)`, async () => {
    using folder = temporaryFolder()
    writeFileSync(join(folder.path, 'variables'), shellText(ODD, shell))
    const child = Bun.spawn(command('variables'), {
      cwd: folder.path,
      env: {
        PATH: process.env.PATH ?? '',
        HOME: folder.path,
        LANG: 'C.UTF-8',
        BERTH_API_KEY: 'of another instance',
      },
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    const set = Object.fromEntries(
      (await child.stdout.text())
        .split('\0')
        .map((line) => [line.split('=', 1)[0], line.slice(line.indexOf('=') + 1)]),
    )
    const { BERTH_API_KEY: _, ...expected } = ODD
    expect(set).toMatchObject(expected)
    expect(set).not.toHaveProperty('BERTH_API_KEY')
    expect(readdirSync(folder.path)).not.toContain('ran')
  })
}

test('env prints the instance of the working directory, and commands anywhere then find it', async () => {
  await using here = place()
  const info = JSON.parse((await here.berth('tree', [...DETACH, '--json'])).stdout)
  const { stdout } = await here.berth('tree/below', ['env', '--shell', 'json'], {
    BERTH_BASE_URL: 'http://other',
  })
  const variables = JSON.parse(stdout)
  expect(variables).toEqual({
    BERTH_BASE_URL: info.base_url,
    BERTH_API_KEY: info.api_key,
    BERTH_ADMIN_TOKEN: info.admin_token,
    BERTH_MCP_URL: info.mcp_url,
  })
  expect((await here.berth('elsewhere', ['servers'], variables)).exitCode).toBe(0)
  expect((await here.berth('tree', ['env'])).stdout).toStartWith("export BERTH_BASE_URL='")
  expect((await here.berth('tree', ['env'], { SHELL: '/usr/bin/fish' })).stdout).toStartWith('set -gx ')
  await here.berth('tree', ['stop'])
  expect(await here.berth('tree', ['env'])).toMatchObject({ exitCode: 1, stdout: '' })
  rmSync(join(here.path, 'tree'), { recursive: true })
})
