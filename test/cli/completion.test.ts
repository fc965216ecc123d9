import { afterAll, beforeAll, expect, test } from 'bun:test'
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { shellQuote } from '../../src/runtime/shell-quote.ts'
import { command as berthCommand } from '../support/serve.ts'
import { run, type Served, serve, temporaryFolder } from './command.ts'
import { onTerminal, type Typed } from './terminal.ts'

let folder: ReturnType<typeof temporaryFolder>
let berth: Served
let server: string
beforeAll(async () => {
  folder = temporaryFolder()
  berth = await serve([], { cwd: folder.path })
  server = await berth.server()
  mkdirSync(join(folder.path, 'bin'))
  mkdirSync(join(folder.path, 'some folder'))
  mkdirSync(join(folder.path, 'only/one'), { recursive: true })
  writeFileSync(join(folder.path, 'settings.json'), '{}')
  const program = join(folder.path, 'bin/berth')
  writeFileSync(program, `#!/bin/sh\nexec ${shellQuote(berthCommand)} "$@"\n`)
  chmodSync(program, 0o755)
})
afterAll(async () => {
  await berth[Symbol.asyncDispose]()
  folder[Symbol.dispose]()
})

/** What is offered for the words, the last of which is being typed. */
async function offered(...words: string[]): Promise<string[]> {
  const { stdout } = await run(['__complete', 'fish', '--', ...words], { cwd: folder.path })
  const [kind = '', ...lines] = stdout.trimEnd().split('\n')
  return kind === 'words' ? lines.map((line) => line.split('\t')[0] ?? '') : [kind]
}

test('offers commands, options and values in their places', async () => {
  expect(await offered('')).toContain('servers')
  expect(await offered('')).not.toContain('__complete')
  expect(await offered('ser')).toEqual(['serve', 'servers'])
  expect(await offered('servers', 'st')).toEqual(['start', 'stop'])
  expect(await offered('serve', '--is')).toEqual(['--isolation'])
  expect(await offered('serve', '--isolation', 'b')).toEqual(['bubblewrap'])
  expect(await offered('serve', '--isolation=b')).toEqual(['--isolation=bubblewrap'])
  expect(await offered('servers', 'create', '--json', '--tier', '')).toEqual(['small', 'medium', 'large'])
  expect(await offered('completion', '')).toEqual(['bash', 'zsh', 'fish'])
  expect(await offered('servers', 'create', '--task', '')).toEqual([])
  expect(await offered('env', '--shell', 'f')).toEqual(['fish'])
  expect(await offered('run', '--cov')).toEqual(['--coverage', '--coverage-min'])
  expect(await offered('run', '--coverage', '')).toEqual(['files'])
  expect(await offered('run', '--keep', '--', 'sett')).toEqual(['files'])
  expect(await offered('stop', '--data', '')).toEqual(['directories'])
  expect(await offered('help', 'snap')).toEqual(['snapshot'])
  expect(await offered('help', 'faults', 'ad')).toEqual(['add'])
  // Plain "berth deliveries" is "berth deliveries list".
  expect(await offered('deliveries', '--status', 'p')).toEqual(['pending'])
})

test('prints the script of the own shell without a name, and lists the known shells for another one', async () => {
  const script = (await run(['completion', 'zsh'])).stdout
  expect(script).not.toBe('')
  expect((await run(['completion'], { env: { SHELL: '/usr/bin/zsh' } })).stdout).toBe(script)
  const { exitCode, stderr } = await run(['completion'], { env: { SHELL: '/bin/tcsh' } })
  expect([exitCode, stderr]).toEqual([2, expect.stringContaining('bash, zsh, fish')])
})

test('offers no name that a command would read as an option', async () => {
  const { id } = await berth.json('servers', 'create', '--task', '--yes')
  expect(await offered('servers', 'delete', '')).toContain(id)
  expect(await offered('servers', 'delete', '')).not.toContain('--yes')
  await berth.run(['servers', 'delete', id, '--yes'])
})

test('webhook ids and names of events are offered where they are meant', async () => {
  const { stdout } = await berth.run(['webhooks', 'create', 'https://8.8.8.8/', '--json'])
  expect(await offered('webhooks', 'delete', 'wh_')).toEqual([JSON.parse(stdout).id])
  expect(await offered('webhooks', 'create', '--events', 'quota.')).toEqual([
    'quota.threshold',
    'quota.cap_reached',
  ])
  expect(await offered('webhooks', 'create', '--events', 'quota.threshold,task.c')).toEqual([
    'quota.threshold,task.created',
    'quota.threshold,task.completed',
  ])
})

test('ids of tasks are offered with their state and goal', async () => {
  const { stdout } = await berth.run(['tasks', 'run', 'complete: x\n\u001b[31mquietly', '--json', '--detach'])
  const { task_id: id } = JSON.parse(stdout)
  for (const command of ['get', 'answer', 'cancel', 'events'])
    expect(await offered('tasks', command, 'task_')).toEqual([id])
  expect(await offered('tasks', '')).toEqual([
    'list',
    'run',
    'create',
    'get',
    'answer',
    'cancel',
    'release',
    'events',
  ])
  expect(await offered('tasks', 'run', '--file', '')).toEqual(['files'])
  expect(await offered('tasks', 'run', 'x', '--server', '')).toEqual([server])
  await berth.run(['tasks', 'events', id, '-f'])
  const { stdout: described } = await run(['__complete', 'fish', '--', 'tasks', 'get', ''], {
    cwd: folder.path,
  })
  expect(described).toBe(`words\n${id}\tcompleted, complete: x quietly\n`)
})

test('slugs of projects, their ids and ids of templates are offered where they are meant', async () => {
  const { stdout } = await berth.run(['projects', 'create', '--name', 'Corner shop', '--json'])
  const { id } = JSON.parse(stdout)
  expect(await offered('projects', 'get', '')).toEqual(['corner-shop'])
  expect(await offered('projects', 'get', 'prj_')).toEqual([id])
  expect(await offered('projects', 'c')).toEqual(['create', 'cleanup'])
  expect(await offered('projects', 'create', '--p')).toEqual(['--public', '--private'])
  expect(await offered('projects', 'create', '--template', 'static')).toEqual(['static-site'])
  expect(await offered('projects', 'create', '--template=static')).toEqual(['--template=static-site'])
  expect(await offered('projects', 'create', '--server', '')).toEqual([server])
  expect(await offered('projects', 'create', '--archive', '')).toEqual(['files'])
  expect(await offered('projects', 'create', '')).toEqual(['directories'])
  expect(await offered('secrets', 'set', 'A=1', '--project=corner')).toEqual(['--project=corner-shop'])
  expect(await offered('secrets', 'set', 'A=1', '--project=prj_')).toEqual([`--project=${id}`])
  expect(await offered('secrets', 'import', '')).toEqual(['files'])
  expect(await offered('deploy', '')).toEqual(['directories'])
  expect(await offered('keys', 'create', 'x', '--projects', '')).toEqual([id])
  const { stdout: described } = await run(['__complete', 'fish', '--', 'projects', 'get', ''], {
    cwd: folder.path,
  })
  expect(described).toBe('words\ncorner-shop\tunbuilt, Corner shop\n')
})

test('ids of accounts and deliveries, which the control API knows, are offered with their choices', async () => {
  const { stdout } = await berth.run(['accounts', 'create', '--label', 'worker', '--json'])
  const { id } = JSON.parse(stdout)
  expect(await offered('accounts', 'update', 'acct_')).toContain(id)
  expect(await offered('events', '--account', id.slice(0, -1))).toEqual([id])
  expect(await offered('events', '--event', 'quota.')).toEqual(['quota.threshold', 'quota.cap_reached'])
  expect(await offered('deliveries', 'list', '--status', 'd')).toEqual(['delivered', 'disabled'])
  const { deliveries } = JSON.parse((await berth.run(['deliveries', '--json'])).stdout)
  expect(deliveries.length).toBeGreaterThan(0)
  expect(await offered('deliveries', 'show', 'dlv_')).toEqual(deliveries.map(({ id }: { id: string }) => id))
  expect(await offered('scenarios', 'set', '')).toEqual(['files'])
  expect(await offered('clock', 'un')).toEqual(['unfreeze'])
})

test('files, folders and server ids are offered where they are meant', async () => {
  expect(await offered('serve', '--config', '')).toEqual(['files'])
  expect(await offered('serve', '--data=')).toEqual(['directories'])
  expect(await offered('files', 'put', server, 'x', '')).toEqual(['files'])
  expect(await offered('exec', server, '--', 'l')).toEqual(['files'])
  expect(await offered('exec', 'srv_')).toEqual([server])
  expect(await offered('servers', 'get', '')).toEqual([server])
})

test('a server is offered by its label where that is plain and its own, else by its id', async () => {
  const provision = async (label: string): Promise<string> =>
    JSON.parse((await berth.run(['servers', 'create', '--task', label, '--json'])).stdout).id
  const ids = [
    await provision('shop'),
    await provision('two words'),
    await provision('twin'),
    await provision('twin'),
  ]
  const [shop = '', spaced = '', ...twins] = ids
  expect((await offered('exec', '')).toSorted()).toEqual([server, spaced, ...twins, 'shop'].toSorted())
  expect(await offered('exec', 'sh')).toEqual(['shop'])
  expect(await offered('exec', shop.slice(0, -1))).toEqual([shop])
  expect(await offered('files', 'list', '-s', 'sh')).toEqual(['shop'])
  for (const id of ids) await berth.run(['servers', 'delete', id])
})

test('cp and sync offer servers and projects with their colon, else files of this machine', async () => {
  await berth.run(['servers', 'rename', '--server', server, 'quay'])
  await berth.run(['projects', 'create', '--name', 'quarry', '--server', server])
  expect(await offered('cp', 'settings.json', 'qu')).toEqual(['quay:', 'quarry:'])
  expect(await offered('cp', 'quay')).toEqual(['quay:'])
  expect(await offered('sync', '.', 'quarr')).toEqual(['quarry:'])
  for (const typed of ['', 'sett', './qu', 'quay:', 'quay:a'])
    expect(await offered('cp', typed)).toEqual(['files'])
  await berth.run(['projects', 'delete', 'quarry'])
  await berth.run(['servers', 'update', server, '--task', ''])
})

test('ids of keys are offered, and those of servers one behind the other', async () => {
  const { stdout } = await berth.run(['keys', 'list', '--json'])
  const ids = JSON.parse(stdout).keys.map((key: { id: string }) => key.id)
  expect(await offered('keys', '')).toEqual(['list', 'create', 'update', 'delete'])
  expect(await offered('keys', 'delete', 'key_')).toEqual(ids)
  expect(await offered('keys', 'update', 'x', '--servers', '')).toEqual([server])
  expect(await offered('keys', 'update', 'x', '--servers', 'srv_x,')).toEqual([`srv_x,${server}`])
  expect(await offered('keys', 'update', 'x', '--servers=srv_x,srv_')).toEqual([`--servers=srv_x,${server}`])
  expect(await offered('keys', 'update', 'x', '--servers', `${server},`)).toEqual([])
  expect(await offered('keys', 'update', 'x', '--api-key', '')).toEqual([])
})

test('without an instance TAB offers no server and prints no error', async () => {
  using empty = temporaryFolder()
  const outcome = await run(['__complete', 'zsh', '--', 'exec', ''], { cwd: empty.path })
  expect(outcome).toMatchObject({ exitCode: 0, stdout: 'words\n', stderr: '' })
})

/** A command line as typed, with ⇥ for TAB, and what it becomes. */
const TYPED: [typed: string, becomes: string][] = [
  ['berth serve --iso⇥', 'berth serve --isolation'],
  ['berth serve --isolation b⇥', 'berth serve --isolation bubblewrap'],
  ['berth serve --isolation=b⇥', 'berth serve --isolation=bubblewrap'],
  ['berth serve --config sett⇥', 'berth serve --config settings.json'],
  ['berth serve --config=sett⇥', 'berth serve --config=settings.json'],
  ['berth serve --data some⇥', 'berth serve --data some\\ folder'],
  ['berth serve --data=some⇥', 'berth serve --data=some\\ folder'],
  ['berth serve --data only/⇥', 'berth serve --data only/one'],
  ['berth exec srv_⇥', 'berth exec SERVER'],
  ['berth projects get corn⇥', 'berth projects get corner-shop'],
  ['berth cp settings.json corn⇥x', 'berth cp settings.json corner-shop:x'],
  ['berth projects create --template=static⇥', 'berth projects create --template=static-site'],
  ['berth keys update x --servers=srv_⇥', 'berth keys update x --servers=SERVER'],
  ['berth keys update x --servers x,srv_⇥', 'berth keys update x --servers x,SERVER'],
  ['berth exec x -- "$(touch ran)" sett⇥', 'berth exec x -- "$(touch ran)" settings.json'],
]

const SHELLS = {
  bash: {
    command: ['bash', '--noprofile', '--norc', '-i'],
    prepare: 'source <(berth completion bash)',
  },
  zsh: {
    command: ['zsh', '-f', '-i'],
    prepare: 'autoload -U compinit; compinit -u -D; source <(berth completion zsh)',
  },
  fish: {
    command: ['fish', '--no-config', '-i'],
    prepare: 'berth completion fish | source',
  },
} as const

for (const [shell, { command, prepare }] of Object.entries(SHELLS)) {
  const found = Bun.which(command[0])
  const name = `TAB in a real ${shell} completes, and runs nothing of what is being typed`
  test.skipIf(!found)(
    found ? name : `${name} (SKIP: ${shell} is not installed)`,
    async () => {
      await using terminal = onTerminal([...command], {
        cwd: folder.path,
        env: { PATH: `${folder.path}/bin:${process.env.PATH}`, PS1: '> ' },
      })
      terminal.type(`${prepare}\necho pre''pared\n`)
      await terminal.shows('prepared')
      for (const [typed, becomes] of TYPED) {
        const expected = becomes.replace('SERVER', server)
        expect(await lineAfter(terminal, typed.replace('⇥', '\t'))).toBe(expected)
      }
      expect(await Bun.file(join(folder.path, 'ran')).exists()).toBe(false)
    },
    120_000,
  )
}

let lines = 0

/** Types the keys, then goes to the line's start and makes it a quoted word of echo instead of running it. */
async function lineAfter(terminal: Typed, keys: string): Promise<string> {
  const mark = `line${++lines}`
  terminal.type(`${keys}\x05'\x01echo ${mark}: '\n`)
  const shown = new RegExp(`^${mark}: (.*)$`, 'm')
  await terminal.shows(shown)
  const line = shown.exec(terminal.output())?.[1] ?? ''
  // Shells differ in whether a completed folder keeps its slash when the line goes on.
  return line.trimEnd().replace(/\/$/, '')
}
