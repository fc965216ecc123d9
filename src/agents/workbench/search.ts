import { ComputeError, type Sandbox } from '../../compute/sandbox.ts'
import { onAbort } from '../../runtime/wait.ts'

/** Most matches of a search. @bound reader */
const MAX_MATCHES = 200

/** Most bytes of an expression or a directory. Linux passes 128 KiB in a variable. @bound system */
const MAX_INPUT = 100_000

/** Most bytes of grep's output that are read. @bound program */
const MAX_OUTPUT = 256 * 1024

/** Milliseconds that a search may take. */
const TIMEOUT_MS = 20_000

/**
 * Runs in the sandbox, not in berth, because an expression can keep its evaluator busy forever. Both texts are passed
 * in variables, so no shell interprets them.
 */
const COMMAND =
  'exec grep -rnHIE --exclude-dir=.git --exclude-dir=node_modules -e "$BERTH_PATTERN" -- "$BERTH_FOLDER"'

/** A line that matches. */
export interface Match {
  readonly path: string
  /** Counts from 1. */
  readonly line: number
  readonly text: string
}

/** The options of `searchFiles`. */
interface SearchOptions {
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
}: SearchOptions): Promise<{ matches: Match[]; truncated: boolean }> {
  if (/[\0\n]/.test(pattern)) throw new ToolError('The expression must be one line.')
  if (dir.includes('\0')) throw new ToolError('A path cannot hold a NUL character.')
  if ([pattern, dir].some((text) => Buffer.byteLength(text) > MAX_INPUT))
    throw new ToolError(`An expression and a directory have at most ${MAX_INPUT} bytes.`)
  const chunks: Record<'stdout' | 'stderr', Uint8Array[]> = { stdout: [], stderr: [] }
  const execution = sandbox.exec({
    command: COMMAND,
    env: { BERTH_PATTERN: pattern, BERTH_FOLDER: dir === '' ? '.' : dir, LC_ALL: 'C.UTF-8' },
    timeoutMs: TIMEOUT_MS,
    background: 'ends',
    outputLimit: MAX_OUTPUT,
    onOutput: (stream, data) => void chunks[stream].push(data),
  })
  using _abort = onAbort(signal, () => execution.cancel())
  try {
    const { exitCode, timedOut, truncated } = await execution.exit
    signal.throwIfAborted()
    const lines = decode(chunks.stdout).split('\n')
    // A cut line could end within a secret, which would not be masked.
    if (truncated) lines.pop()
    if (exitCode > 1 && lines.length <= 1 && !timedOut) {
      throw new ToolError(`The search failed: ${decode(chunks.stderr).trim() || `exit code ${exitCode}`}`)
    }
    const all = lines.flatMap(parseMatch)
    const matches = all.slice(0, MAX_MATCHES)
    return { matches, truncated: truncated || timedOut || matches.length < all.length }
  } catch (error) {
    // As for a command, the agent may continue if one cannot be started.
    if (error instanceof ComputeError && !sandbox.ending) throw new ToolError(error.message)
    throw error
  }
}

/** Parses a line of grep's output: `./PATH:NUMBER:TEXT`. */
function parseMatch(line: string): Match[] {
  const [, path, number, text] = /^(?:\.\/)?(.*?):(\d+):(.*)$/s.exec(line) ?? []
  if (path === undefined || number === undefined || text === undefined) return []
  return [{ path, line: Number(number), text }]
}

const decode = (chunks: Uint8Array[]): string => new TextDecoder().decode(Buffer.concat(chunks))

/** A tool could not do its work; the message is for its user. */
export class ToolError extends Error {
  override readonly name = 'ToolError'
}
