import { ComputeError, type Sandbox } from '../../compute/driver.ts'
import { onAbort } from '../../runtime/abort.ts'
import { ToolError } from './errors.ts'

/** Matches that are given at most. */
const MOST_MATCHES = 200

/** Bytes of an expression and of a directory: Linux passes 128 KiB in a variable. */
const LONGEST_INPUT = 100_000

/** Bytes of output that are looked at. */
const MOST_BYTES = 256 * 1024

/** Milliseconds that a search may take. */
const PATIENCE_MS = 20_000

/**
 * Runs in the sandbox, not in berth, because an expression can keep its evaluator busy forever. Both texts are passed
 * in variables, so no shell interprets them.
 */
const COMMAND =
  'exec grep -rnHIE --exclude-dir=.git --exclude-dir=node_modules -e "$BERTH_PATTERN" -- "$BERTH_FOLDER"'

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
  /** A directory or file, relative to the workspace. */
  dir: string
  signal: AbortSignal
}

/** Returns the lines of text files that an expression matches, in no particular order of files. @throws ToolError */
export async function searchFiles({
  sandbox,
  pattern,
  dir,
  signal,
}: Search): Promise<{ matches: Match[]; truncated: boolean }> {
  if (/[\0\n]/.test(pattern)) throw new ToolError('The expression must be one line.')
  if (dir.includes('\0')) throw new ToolError('A path cannot hold a NUL character.')
  if ([pattern, dir].some((text) => Buffer.byteLength(text) > LONGEST_INPUT))
    throw new ToolError(`An expression and a folder have at most ${LONGEST_INPUT} bytes.`)
  const chunks: Record<'stdout' | 'stderr', Uint8Array[]> = { stdout: [], stderr: [] }
  const execution = sandbox.exec({
    command: COMMAND,
    env: { BERTH_PATTERN: pattern, BERTH_FOLDER: dir === '' ? '.' : dir, LC_ALL: 'C.UTF-8' },
    timeoutMs: PATIENCE_MS,
    background: 'ends',
    outputLimit: MOST_BYTES,
    onOutput: (stream, data) => void chunks[stream].push(data),
  })
  using _abort = onAbort(signal, () => execution.cancel())
  try {
    const { exitCode, timedOut, truncated } = await execution.exit
    signal.throwIfAborted()
    const lines = textOf(chunks.stdout).split('\n')
    // A line that is cut could end amid a secret, which nothing would recognize.
    if (truncated) lines.pop()
    if (exitCode > 1 && lines.length <= 1 && !timedOut) {
      throw new ToolError(`The search failed: ${textOf(chunks.stderr).trim() || `exit code ${exitCode}`}`)
    }
    const all = lines.flatMap(matchOf)
    const matches = all.slice(0, MOST_MATCHES)
    return { matches, truncated: truncated || timedOut || matches.length < all.length }
  } catch (error) {
    // As for a command: failing to start it is no reason to give up.
    if (error instanceof ComputeError && !sandbox.ending) throw new ToolError(error.message)
    throw error
  }
}

/** Reads a line of grep's: `./PATH:NUMBER:TEXT`. */
function matchOf(line: string): Match[] {
  const [, path, number, text] = /^(?:\.\/)?(.*?):(\d+):(.*)$/s.exec(line) ?? []
  if (path === undefined || number === undefined || text === undefined) return []
  return [{ path, line: Number(number), text }]
}

const textOf = (chunks: Uint8Array[]): string => new TextDecoder().decode(Buffer.concat(chunks))
