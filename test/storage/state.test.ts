import { afterEach, beforeEach, expect, test } from 'bun:test'
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { finishSwap, StateSwap } from '../../src/storage/state.ts'
import { treeOf } from '../support/state.ts'

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'berth-state-'))
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

const write = (files: Record<string, string>, below = folder) => {
  for (const [path, content] of Object.entries(files)) {
    mkdirSync(dirname(join(below, path)), { recursive: true })
    writeFileSync(join(below, path), content)
  }
}

const OLD = { 'berth.db': 'old', 'servers/a/file': 'old', 'logs/a': 'old', 'only-old/x': 'old' }
const NEW = { 'berth.db': 'new', 'servers/b/file': 'new', 'only-new/y': 'new' }
const BESIDE = { '.gitignore': '*', 'credentials.json': '{}', 'master.key': 'k', 'packages/p': 'p' }

/** The files alone: whether an empty folder is left does not matter. */
const state = () =>
  Object.fromEntries(Object.entries(treeOf(folder)).filter(([, what]) => !what.startsWith('folder')))

const stateOf = (files: Record<string, string>) => {
  const other = mkdtempSync(join(tmpdir(), 'berth-state-'))
  try {
    write({ ...BESIDE, ...files }, other)
    return Object.fromEntries(Object.entries(treeOf(other)).filter(([, what]) => !what.startsWith('folder')))
  } finally {
    rmSync(other, { recursive: true, force: true })
  }
}

/** Swaps in a process of its own that is killed before its n-th rename, removal or written file. */
async function swapKilledAt(n: number): Promise<boolean> {
  const module = join(import.meta.dir, '../../src/storage/state.ts')
  const script = `
    import { mock } from 'bun:test'
    import * as fs from 'node:fs'
    import { dirname } from 'node:path'
    const real = { ...fs }
    let left = ${n}
    const counted = (name) => (...args) => {
      if (left-- === 0) process.kill(process.pid, 'SIGKILL')
      return real[name](...args)
    }
    mock.module('node:fs', () => ({ ...real, renameSync: counted('renameSync'), rmSync: counted('rmSync'), writeFileSync: counted('writeFileSync') }))
    const { StateSwap } = await import(${JSON.stringify(module)})
    const swap = new StateSwap(${JSON.stringify(folder)})
    for (const [path, content] of Object.entries(${JSON.stringify(NEW)})) {
      real.mkdirSync(dirname(swap.staging + '/' + path), { recursive: true })
      real.writeFileSync(swap.staging + '/' + path, content)
    }
    swap.ready()
    swap.commit()
    await swap.clear()
  `
  const child = Bun.spawn([process.execPath, '-e', script], { stdio: ['ignore', 'ignore', 'inherit'] })
  await child.exited
  return child.signalCode === 'SIGKILL'
}

test('whenever it is killed, the next start finds the old state or the new one, whole', async () => {
  const [old, next] = [stateOf(OLD), stateOf(NEW)]
  const seen: string[] = []
  for (let n = 0; ; n += 1) {
    rmSync(folder, { recursive: true, force: true })
    write({ ...BESIDE, ...OLD })
    const killed = await swapKilledAt(n)
    finishSwap(folder)
    const found = state()
    seen.push(
      Bun.deepEquals(found, old) ? 'old' : Bun.deepEquals(found, next) ? 'new' : JSON.stringify(found),
    )
    expect(readdirSync(folder)).not.toContain('swap')
    if (!killed) break
  }
  expect(seen.join(' ')).toMatch(/^old (?:old )*new (?:new )*new$/)
  // Every rename of the swap was tried.
  expect(seen.length).toBeGreaterThan(8)
})

test('a state that was made ready and not committed leaves no trace', async () => {
  write({ ...BESIDE, ...OLD })
  const swap = new StateSwap(folder)
  write(NEW, swap.staging)
  await swap.clear()
  expect(state()).toEqual(stateOf(OLD))
})

test('what stands beside the state stays', async () => {
  write({ ...BESIDE, ...OLD })
  const swap = new StateSwap(folder)
  swap.ready()
  swap.commit()
  await swap.clear()
  expect(state()).toEqual(stateOf({}))
})
