import type { Sandbox } from '../../compute/sandbox.ts'
import { AppError } from './plan.ts'

/** The programs that an app's commands can call. */
export interface Tools {
  /** Reports whether a program of this name is on the PATH. */
  has(name: string): Promise<boolean>
  /** Returns the version of Node.js, such as `22.12.0`; null if there is none. */
  nodeVersion(): Promise<string | null>
}

/** All tools that detection asks for. One command looks for all of them. */
const ASKED = ['npm', 'pnpm', 'yarn', 'python3', 'uv', 'poetry', 'pipenv', 'go', 'cargo', 'deno']

/** Time limit of a query in a sandbox, in milliseconds. */
const TIMEOUT_MS = 10_000

/** The tools of a sandbox, asked for once. */
export class SandboxTools implements Tools {
  readonly #sandbox: Sandbox
  #found: Promise<ReadonlySet<string>> | null = null

  constructor(sandbox: Sandbox) {
    this.#sandbox = sandbox
  }

  /**
   * Reports whether a program is installed.
   *
   * @throws ComputeError if the sandbox is gone
   */
  async has(name: string): Promise<boolean> {
    if (!ASKED.includes(name)) return (await this.#query([name])).has(name)
    this.#found ??= this.#query(ASKED)
    return (await this.#found).has(name)
  }

  /**
   * Returns the version of Node.js; null if it is not installed.
   *
   * @throws ComputeError if the sandbox is gone
   */
  async nodeVersion(): Promise<string | null> {
    const output = await this.#run('node --version')
    return /^v(\d+\.\d+\.\d+)/.exec(output)?.[1] ?? null
  }

  async #query(names: readonly string[]): Promise<ReadonlySet<string>> {
    const command = `for name in "$@"; do command -v "$name" >/dev/null 2>&1 && echo "$name"; done; true`
    const output = await this.#run(`set -- ${names.map(quote).join(' ')}; ${command}`)
    return new Set(output.split('\n').filter(Boolean))
  }

  /** Returns the output of a command. */
  async #run(command: string): Promise<string> {
    let output = ''
    const { exit } = this.#sandbox.exec({
      command,
      timeoutMs: TIMEOUT_MS,
      outputLimit: 64 * 1024,
      onOutput(stream, data) {
        if (stream === 'stdout') output += new TextDecoder().decode(data)
      },
    })
    await exit
    return output
  }
}

/** How to install a tool, for a person. */
const REMEDIES: Readonly<Record<string, string>> = {
  python3: 'Install it with your package manager (Debian and Ubuntu: apt install python3 python3-venv)',
  go: 'Install it from https://go.dev/dl or with your package manager (Debian and Ubuntu: apt install golang-go)',
  cargo: 'Install Rust with your package manager (Debian and Ubuntu: apt install cargo)',
  deno: 'Install it from https://deno.com',
}

/**
 * Checks that a tool is installed.
 *
 * @throws AppError with the remedy if it is not
 */
export async function needTool(tools: Tools, name: string): Promise<void> {
  if (await tools.has(name)) return
  const remedy = REMEDIES[name] ?? 'Install it'
  throw new AppError(
    `This app needs ${name}, which is not installed on this machine, or not on the PATH that berth was started with. ${remedy}, and restart berth and the project.`,
  )
}

/** Quotes a word for the shell. */
export function quote(word: string): string {
  return /^[\w./:@%+=,-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`
}
