import { lstatSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import type { SourceLimits } from '../limits.ts'
import { tooLarge } from '../tree.ts'

/** How often a folder that grows is looked at. */
const EVERY_MS = 200

/** Watches a folder while something is fetched into it. */
export interface SizeWatch extends Disposable {
  /** Is aborted with a `SourceError` when the folder has more than the limit. */
  readonly signal: AbortSignal
}

/** Begins to watch how much a folder of few files holds: what git has received so far. */
export function watchSize(folder: string, limits: SourceLimits): SizeWatch {
  const over = new AbortController()
  const timer = setInterval(() => {
    if (sizeOf(folder) > limits.bytes) over.abort(tooLarge(limits))
  }, EVERY_MS)
  return { signal: over.signal, [Symbol.dispose]: () => clearInterval(timer) }
}

/** Bytes of all files below a folder; what goes away meanwhile counts nothing. */
function sizeOf(folder: string): number {
  let bytes = 0
  for (const name of list(folder)) {
    const path = join(folder, name)
    const stats = lstatSync(path, { throwIfNoEntry: false })
    if (stats?.isDirectory()) bytes += sizeOf(path)
    else bytes += stats?.size ?? 0
  }
  return bytes
}

function list(folder: string): string[] {
  try {
    return readdirSync(folder)
  } catch {
    return []
  }
}
