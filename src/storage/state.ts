import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { writePrivate } from './private-file.ts'
import { removeTree, removeTreeAside } from './remove-tree.ts'

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
  // Who is signed in in a browser stays so.
  /^sessions\.(?:db|json)/,
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
const swapPaths = (path: string) => ({
  swap: join(path, 'swap'),
  next: join(path, 'swap', 'next'),
  ready: join(path, 'swap', 'ready.json'),
  past: join(path, 'swap', 'past'),
  /** Once this is written, the next state counts: whoever finds it brings the swap to its end. */
  decided: join(path, 'swap', 'decided.json'),
})

/**
 * Puts another state in place of that of a data folder: whole, or not at all. The next state is made ready in
 * `staging`; `commit` then swaps by renames, which a full disk does not prevent. A process that is killed before leaves
 * the state as it was; one that is killed after is followed by one that finishes the swap (`finishSwap`). Nobody may
 * have the database open meanwhile.
 */
export class StateSwap {
  readonly #path: string
  /** Where the next state is made ready. It is empty at first. */
  readonly staging: string

  /** @param path the data folder, which this process holds */
  constructor(path: string) {
    const { swap, next } = swapPaths(path)
    this.#path = path
    this.staging = next
    removeTree(swap)
    mkdirSync(next, { recursive: true, mode: 0o700 })
  }

  /** The next state is whole: nothing is put into `staging` any more. */
  ready(): void {
    const { ready, past } = swapPaths(this.#path)
    mkdirSync(past, { mode: 0o700 })
    writePrivate(ready, JSON.stringify({ entries: readdirSync(this.staging) }))
  }

  /** Swaps the states, once the next is ready. */
  commit(): void {
    const { ready, decided } = swapPaths(this.#path)
    renameSync(ready, decided)
    swapEntries(this.#path)
  }

  /** Removes what is left of both states beside the one that holds. */
  clear(): Promise<void> {
    return removeTreeAside(swapPaths(this.#path).swap)
  }
}

/** Brings a swap to its end that a killed process had decided on, and removes one that it had not. */
export function finishSwap(path: string): void {
  const { swap, decided } = swapPaths(path)
  if (!existsSync(swap)) return
  if (existsSync(decided)) swapEntries(path)
  removeTree(swap)
}

/** Renames entry by entry; begun anew, it goes on where it was. */
function swapEntries(path: string): void {
  const { next, past, decided } = swapPaths(path)
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
