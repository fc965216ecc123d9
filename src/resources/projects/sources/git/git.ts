import { SourceError } from '../errors.ts'
import type { Mask } from '../mask.ts'
import { explainFailure } from './failures.ts'
import { runGit } from './process.ts'

/** Lines of output that are passed on; a server may send any number. */
const MAX_LINES = 500
/** Lines kept to tell why git failed. */
const KEPT_LINES = 20

/** What all commands on one repository share. */
export interface GitOptions {
  cwd: string
  env: Record<string, string>
  /** Bytes that any file it writes may have. */
  fileLimit: number
  mask: Mask
  log: (text: string) => void
}

/** How one command runs. */
interface RunOptions {
  signal: AbortSignal
  /** Receives standard output in place of the result. */
  onOutput?: (chunk: Uint8Array) => void
  /** Says nothing of what git says: for questions. */
  quiet?: boolean
}

/** Runs git commands for one fetch, and turns their failures into sentences. */
export class Git {
  readonly #options: GitOptions
  #lines = 0

  constructor(options: GitOptions) {
    this.#options = options
  }

  /** Runs a command and resolves to its standard output. @throws SourceError where it fails; the signal's reason */
  async run(args: readonly string[], { signal, onOutput, quiet = false }: RunOptions): Promise<string> {
    const { cwd, env, fileLimit, mask } = this.#options
    const kept: string[] = []
    const onLine = (line: string) => {
      const shown = mask(line)
      kept.push(shown)
      if (kept.length > KEPT_LINES) kept.shift()
      if (!quiet) this.#say(shown)
    }
    const { code, output } = await runGit({
      args,
      cwd,
      env,
      fileLimit,
      signal,
      onLine,
      ...(onOutput ? { onOutput } : {}),
    })
    if (code === 0) return output
    throw new SourceError(explainFailure(kept, fileLimit))
  }

  #say(line: string): void {
    this.#lines += 1
    if (this.#lines > MAX_LINES) return
    this.#options.log(this.#lines === MAX_LINES ? '(further output is left out)' : line)
  }
}
