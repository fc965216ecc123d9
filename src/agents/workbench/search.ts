import type { Sandbox } from '../../compute/driver.ts'
import { ToolError } from './errors.ts'

/** Matches that are given at most, and characters of each line. */
const MOST_MATCHES = 200
const LONGEST_LINE = 400

/** Bytes of output that are looked at. */
const MOST_BYTES = 256 * 1024

/** Milliseconds that a search may take. */
const PATIENCE_MS = 20_000

/**
 * In the sandbox, not in berth: an expression can keep whoever evaluates it busy for ever. Both texts come in
 * variables, so that no shell reads them.
 */
const COMMAND =
  'exec grep -rnIE --exclude-dir=.git --exclude-dir=node_modules -e "$BERTH_PATTERN" -- "$BERTH_FOLDER"'

/** A line that was found. */
export interface Match {
  readonly path: string
  /** Counts from 1. */
  readonly line: number
  readonly text: string
}

/** What to search. */
interface Search {
  sandbox: Sandbox
  /** A POSIX extended regular expression. */
  pattern: string
  /** A folder or file, relative to the workspace. */
  folder: string
  signal: AbortSignal
}

/** The lines of text files that an expression matches, in no particular order of files. @throws ToolError */
export async function searchFiles({
  sandbox,
  pattern,
  folder,
  signal,
}: Search): Promise<{ matches: Match[]; truncated: boolean }> {
  if (/[\0\n]/.test(pattern)) throw new ToolError('The expression must be one line.')
  const chunks: Record<'stdout' | 'stderr', Uint8Array[]> = { stdout: [], stderr: [] }
  const execution = sandbox.exec({
    command: COMMAND,
    env: { BERTH_PATTERN: pattern, BERTH_FOLDER: folder === '' ? '.' : folder, LC_ALL: 'C.UTF-8' },
    timeoutMs: PATIENCE_MS,
    background: 'ends',
    outputLimit: MOST_BYTES,
    onOutput: (stream, data) => void chunks[stream].push(data),
  })
  const cancel = (): void => execution.cancel()
  signal.addEventListener('abort', cancel)
  try {
    const { exitCode, timedOut, truncated } = await execution.exit
    signal.throwIfAborted()
    const lines = textOf(chunks.stdout).split('\n')
    if (exitCode > 1 && lines.length <= 1 && !timedOut) {
      throw new ToolError(`The search failed: ${textOf(chunks.stderr).trim() || `exit code ${exitCode}`}`)
    }
    const all = lines.flatMap(matchOf)
    const matches = all.slice(0, MOST_MATCHES)
    return { matches, truncated: truncated || timedOut || matches.length < all.length }
  } finally {
    signal.removeEventListener('abort', cancel)
  }
}

/** Reads a line of grep's: `./PATH:NUMBER:TEXT`. */
function matchOf(line: string): Match[] {
  const [, path, number, text] = /^(?:\.\/)?(.*?):(\d+):(.*)$/s.exec(line) ?? []
  if (path === undefined || number === undefined || text === undefined) return []
  return [{ path, line: Number(number), text: text.slice(0, LONGEST_LINE) }]
}

const textOf = (chunks: Uint8Array[]): string => new TextDecoder().decode(Buffer.concat(chunks))
