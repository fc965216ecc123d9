import { closeSync, read, readdirSync, readFileSync, writeSync } from 'node:fs'
import type { Libc } from './libc.ts'

/** Threads of Bun's pool; SANDBOXD_ENVIRONMENT sets this limit. */
const POOL_THREADS = 2

/** How often they are looked for, and microseconds between two looks. */
const MOST_LOOKS = 2_000
const REST_US = 50

/**
 * Makes Bun start the threads of its pool while the process limit leaves room: it aborts if it needs a thread later and
 * cannot have one. Each is given a read that blocks, so that the next one needs another.
 *
 * @returns a function that waits until they are there, which usually takes no time, and ends the reads
 */
export function startPoolThreads(libc: Pick<Libc, 'pipe' | 'rest'>): () => void {
  const writers = Array.from({ length: POOL_THREADS }, () => {
    const ends = libc.pipe('write')
    read(ends.read, new Uint8Array(1), 0, 1, null, () => closeSync(ends.read))
    return ends.write
  })
  return () => {
    for (let look = 0; look < MOST_LOOKS && poolThreads() < POOL_THREADS; look += 1) {
      // A new thread may have to wait for this one's processor, for milliseconds if this one goes on.
      libc.rest(REST_US)
    }
    for (const writer of writers) {
      writeSync(writer, '\n')
      closeSync(writer)
    }
  }
}

/** Counts the threads of Bun's pool, by their names. */
function poolThreads(): number {
  try {
    const threads = readdirSync('/proc/self/task')
    const names = threads.map((thread) => readFileSync(`/proc/self/task/${thread}/comm`, 'utf8'))
    return names.filter((name) => name.startsWith('Bun Pool')).length
  } catch {
    // One that has ended since, or no /proc: the next look finds out.
    return 0
  }
}
