import { afterAll, beforeAll, expect, test } from 'bun:test'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { command as berthCommand } from '../support/serve.ts'
import { type Served, serve } from './command.ts'
import { onTerminal } from './terminal.ts'

let kept: Served
beforeAll(async () => {
  kept = await serve()
})
afterAll(() => kept[Symbol.asyncDispose]())

/** Runs a command on a terminal, and answers its question. */
async function answering(berth: Served, args: readonly string[], typed: string) {
  await using terminal = onTerminal([...berthCommand, ...args], { cwd: berth.cwd })
  await terminal.shows(/Go on\? .*\[y\/N\]/)
  terminal.type(typed)
  const exitCode = await terminal.exited
  return { exitCode, output: Bun.stripANSI(terminal.output()) }
}

const count = async (berth: Served): Promise<number> =>
  (await berth.run(['servers', '-q'])).stdout.split('\n').filter(Boolean).length

test('asks a person before a server is deleted, names what is deleted with it, and keeps it unless the response is yes', async () => {
  const { stdout } = await kept.run(['servers', 'create', '--task', 'shop', '--json'])
  const { id } = JSON.parse(stdout)
  await kept.run(['projects', 'create', '--server', id, '--name', 'front'])
  for (const typed of ['\r', 'no\r', 'yep\r']) {
    const refused = await answering(kept, ['servers', 'delete'], typed)
    expect(refused.exitCode).toBe(1)
    expect(refused.output).toContain(`${id} (shop) is deleted with all files on it and its 1 project.`)
    expect(refused.output).toContain('Nothing was changed.')
  }
  expect((await answering(kept, ['servers', 'delete'], '\x03')).exitCode).toBe(130)
  expect(await count(kept)).toBe(1)
  expect((await answering(kept, ['servers', 'delete'], 'y\r')).output).toContain(`Deleted ${id}.`)
  expect(await count(kept)).toBe(0)
})

test('a new project without a server offers to provision one', async () => {
  const args = ['projects', 'create', '--name', 'first']
  const asking = async (typed: string) => {
    await using terminal = onTerminal([...berthCommand, ...args], { cwd: kept.cwd })
    await terminal.shows('There is no server yet. Provision one?')
    terminal.type(typed)
    return { exitCode: await terminal.exited, output: Bun.stripANSI(terminal.output()) }
  }
  for (const typed of ['n\r', 'maybe\r']) {
    const refused = await asking(typed)
    expect(refused.exitCode).toBe(1)
    expect(refused.output).toContain('Provision one with "berth servers create".')
    expect(await count(kept)).toBe(0)
  }
  // Nothing is lost by a server more, so Enter alone is yes.
  for (const typed of ['\r', 'y\r']) {
    const { exitCode, output } = await asking(typed)
    expect(exitCode).toBe(0)
    expect(output).toMatch(/Provisioned srv_\w+\.\s+Created prj_/)
    await kept.run(['servers', 'delete', '--yes'])
  }
})

test('asks nobody with --yes or without a terminal', async () => {
  await kept.server()
  await using terminal = onTerminal([...berthCommand, 'servers', 'delete', '--yes'], { cwd: kept.cwd })
  expect(await terminal.exited).toBe(0)
  expect(terminal.output()).not.toContain('[y/N]')
  await kept.server()
  expect(await kept.run(['servers', 'delete'])).toMatchObject({ exitCode: 0, stderr: '' })
  expect(await count(kept)).toBe(0)
})

test('a reset of data that is kept can be undone, and is asked about', async () => {
  await kept.server()
  expect((await answering(kept, ['reset'], 'n\r')).exitCode).toBe(1)
  expect(await count(kept)).toBe(1)
  const { output } = await answering(kept, ['reset'], 'y\r')
  expect(output).toMatch(/Reset in [\d.]+ ms\. Undo it with "berth snapshot restore before-reset"\./)
  expect(await count(kept)).toBe(0)
  expect((await answering(kept, ['snapshot', 'restore', 'before-reset'], 'y\r')).exitCode).toBe(0)
  expect(await count(kept)).toBe(1)
})

test('a reset without an undo saves nothing, and says so before', async () => {
  for (const name of ['before-reset', 'before-restore']) await kept.run(['snapshot', 'delete', name])
  const { output } = await answering(kept, ['reset', '--no-undo'], 'y\r')
  expect(output).toContain('are removed, without an undo.')
  expect(output).not.toContain('Undo it')
  expect((await kept.run(['snapshot', '-q'])).stdout).toBe('')
})

test('an instance that keeps nothing is reset at once and saves nothing', async () => {
  await using ephemeral = await serve(['--ephemeral'])
  const { data_dir } = ephemeral.info
  await using terminal = onTerminal([...berthCommand, 'reset', '--data', data_dir], { cwd: ephemeral.cwd })
  expect(await terminal.exited).toBe(0)
  expect(terminal.output()).toMatch(/^Reset in [\d.]+ ms\.\r?\n$/)
  expect((await ephemeral.run(['snapshot', '-q', '--data', data_dir])).stdout).toBe('')
})

test('a second reset keeps what the first one can be undone with, and the last five are kept', async () => {
  await using own = await serve()
  await own.server()
  const reset = async () => (await own.run(['reset'])).stdout
  expect(await reset()).toEndWith('Undo it with "berth snapshot restore before-reset".\n')
  expect(await reset()).toEndWith('Undo it with "berth snapshot restore before-reset-2".\n')
  await own.run(['snapshot', 'restore', 'before-reset'])
  expect(await count(own)).toBe(1)
  for (const last of [3, 4, 5]) expect(await reset()).toEndWith(`before-reset-${last}".\n`)
  expect(await reset()).toEndWith('Undo it with "berth snapshot restore before-reset-6".\n')
  const names = (await own.run(['snapshot', '-q'])).stdout.trim().split('\n').sort()
  expect(names).toEqual(
    ['before-restore', ...[2, 3, 4, 5, 6].map((number) => `before-reset-${number}`)].sort(),
  )
})

test('a restore can be undone, also with --yes, but not with --no-undo', async () => {
  await using own = await serve()
  await own.run(['snapshot', 'save', 'empty'])
  const id = await own.server()
  const restored = await own.run(['snapshot', 'restore', 'empty', '--yes'])
  expect(restored.stdout).toMatch(
    /^Restored empty in [\d.]+ ms\. Undo it with "berth snapshot restore before-restore"\.\n$/,
  )
  expect(await count(own)).toBe(0)
  await own.run(['snapshot', 'restore', 'before-restore', '--no-undo'])
  expect((await own.run(['servers', '-q'])).stdout).toBe(`${id}\n`)
  const names = (await own.run(['snapshot', '-q'])).stdout.trim().split('\n').sort()
  expect(names).toEqual(['before-restore', 'empty'])
})

test('the last reset is undone by "berth reset --undo"', async () => {
  await using own = await serve()
  expect(await own.run(['reset', '--undo'])).toMatchObject({ exitCode: 1, stdout: '' })
  const id = await own.server()
  await own.run(['reset'])
  expect(await count(own)).toBe(0)
  expect((await own.run(['reset', '--undo'])).stdout).toStartWith('Restored before-reset in ')
  expect((await own.run(['servers', '-q'])).stdout).toBe(`${id}\n`)
})

test('a restore whose state cannot be saved first asks a person, and refuses in a script', async () => {
  await using own = await serve()
  await own.run(['snapshot', 'save', 'empty'])
  await own.server()
  // berth copies no paths of more than 4,096 bytes.
  const nest = 'for n in $(seq 30); do mkdir $0 && cd $0 || exit 1; done'
  mkdirSync(join(own.info.data_dir, 'nested'))
  Bun.spawnSync(['sh', '-c', nest, 'n'.repeat(200)], { cwd: join(own.info.data_dir, 'nested') })
  for (const more of [[], ['--yes']]) {
    const refused = await own.run(['snapshot', 'restore', 'empty', ...more])
    expect(refused).toMatchObject({ exitCode: 1, stdout: '' })
    expect(refused.stderr).toMatch(
      /^berth: The state cannot be saved first: .* "berth snapshot restore empty --no-undo" goes/,
    )
  }
  expect(await count(own)).toBe(1)
  await using terminal = onTerminal([...berthCommand, 'snapshot', 'restore', 'empty'], { cwd: own.cwd })
  await terminal.shows('Go on?')
  terminal.type('y\r')
  await terminal.shows('Restore without a way back?')
  terminal.type('y\r')
  expect(await terminal.exited).toBe(0)
  expect(await count(own)).toBe(0)
})
