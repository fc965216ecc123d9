import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { STAGING } from '../../compute/local/staging.ts'
import { isTemporary } from '../../compute/local/temporary.ts'
import { shellQuote } from '../quote.ts'
import type { Leak } from './leak.ts'

/** Returns the leak that a temporary directory of a dead instance is. */
export const temporaryLeak = (path: string): Leak =>
  directoryLeak(path, 'the temporary directory of an instance that was killed')

/** What a killed instance was just making in its data directory. The next start there removes it too. */
export function halfMade(dataDir: string): Leak[] {
  const servers = join(dataDir, 'servers')
  const staged = list(servers).flatMap((server) => {
    const staging = join(servers, server, STAGING)
    const names = list(staging).filter(isTemporary)
    return names.map((name) => directoryLeak(join(staging, name), `what was being prepared for ${server}`))
  })
  const snapshots = join(dataDir, 'snapshots')
  const kept = list(snapshots)
  // A directory that was about to be replaced is kept if its successor never took its name.
  const isKept = (name: string): boolean => name.startsWith('.old-') && !kept.includes(name.slice(5))
  const unfinished = kept
    .filter((name) => name.startsWith('.') && !isKept(name))
    .map((name) => directoryLeak(join(snapshots, name), 'a snapshot that was just being made or removed'))
  const swap = join(dataDir, 'swap')
  // One that was decided on is the state: the next start brings it to its end.
  const undecided = existsSync(swap) && !existsSync(join(swap, 'decided.json'))
  const restored = undecided ? [directoryLeak(swap, 'a state that was just being made ready')] : []
  return [...staged, ...unfinished, ...restored]
}

const directoryLeak = (path: string, detail: string): Leak => ({
  kind: 'folder',
  id: path,
  detail,
  remedy: `rm -rf ${shellQuote([path])}`,
})

function list(directory: string): string[] {
  try {
    return readdirSync(directory)
  } catch {
    // There is none, it was removed meanwhile, or it is another user's.
    return []
  }
}
