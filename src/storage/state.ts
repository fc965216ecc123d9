import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { writePrivate } from './private-file.ts'

/**
 * What lies in a data folder and is no part of its state: what identifies and holds the folder, what can be made
 * again, and copies of other states. Everything else is state, whoever makes it: a reset removes it and a snapshot
 * copies it, so that nothing new can be forgotten.
 */
const BESIDE_STATE: readonly RegExp[] = [
  /^\.gitignore$/,
  /^lock(?:-.+)?$/,
  /^instance\.json/,
  /^credentials\.json/,
  /^master\.key/,
  // The log of an instance in the background.
  /^berth\.log/,
  // What sandboxes are given to see, made anew at each start.
  /^sandbox$/,
  // The cache of npm packages.
  /^packages$/,
  /^snapshots$/,
  /^swap$/,
]

/** The names in a data folder that make up its state. */
export const stateEntries = (path: string): string[] =>
  readdirSync(path).filter((name) => !BESIDE_STATE.some((beside) => beside.test(name)))

/** Where another state of a data folder is made ready, and what it replaces is put. */
const folders = (path: string) => ({
  swap: join(path, 'swap'),
  next: join(path, 'swap', 'next'),
  past: join(path, 'swap', 'past'),
  /** Once this is written, the next state counts: whoever finds it brings the swap to its end. */
  decided: join(path, 'swap', 'decided.json'),
})

/**
 * Puts another state in place of that of a data folder: whole, or not at all. The next state is made ready in
 * `staging`; `commit` then swaps by renames. A process that is killed before leaves the state as it was; one that
 * is killed after is followed by one that finishes the swap (`finishSwap`). Nobody may have the database open
 * meanwhile.
 */
export class StateSwap {
  readonly #path: string
  /** Where the next state is made ready. It is empty at first. */
  readonly staging: string

  /** @param path the data folder, which this process holds */
  constructor(path: string) {
    const { swap, next } = folders(path)
    this.#path = path
    this.staging = next
    rmSync(swap, { recursive: true, force: true })
    mkdirSync(next, { recursive: true, mode: 0o700 })
  }

  /** Swaps the states. */
  commit(): void {
    const { swap, decided } = folders(this.#path)
    mkdirSync(swap, { recursive: true, mode: 0o700 })
    writePrivate(decided, JSON.stringify({ entries: readdirSync(this.staging) }))
    swapEntries(this.#path)
  }

  /** Removes what is left of both states beside the one that holds. */
  async clear(): Promise<void> {
    const { swap } = folders(this.#path)
    // Workspaces may hold trees of any depth: the system's own rm takes them in one pass.
    const rm = Bun.spawn(['rm', '-rf', '--', swap], { stdio: ['ignore', 'ignore', 'ignore'] })
    await rm.exited
  }
}

/** Brings a swap to its end that a killed process had decided on, and removes one that it had not. */
export function finishSwap(path: string): void {
  const { swap, decided } = folders(path)
  if (!existsSync(swap)) return
  if (existsSync(decided)) swapEntries(path)
  rmSync(swap, { recursive: true, force: true })
}

/** Renames entry by entry; begun anew, it goes on where it was. */
function swapEntries(path: string): void {
  const { next, past, decided } = folders(path)
  const { entries } = JSON.parse(readFileSync(decided, 'utf8')) as { entries: string[] }
  mkdirSync(past, { recursive: true, mode: 0o700 })
  for (const name of stateEntries(path)) {
    // What is decided on and waits no more has come already.
    if (entries.includes(name) && !existsSync(join(next, name))) continue
    renameSync(join(path, name), join(past, name))
  }
  for (const name of entries) {
    if (existsSync(join(next, name))) renameSync(join(next, name), join(path, name))
  }
  rmSync(decided)
}
