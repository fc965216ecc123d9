import type { Sandbox } from '../../compute/sandbox.ts'
import { shellQuote } from '../../runtime/shell-quote.ts'
import type { Machine, Toolchain } from './machine.ts'

/** All tools that detection asks for. One command looks for all of them. */
const ASKED = ['npm', 'pnpm', 'yarn', 'python3', 'uv', 'poetry', 'pipenv', 'go', 'cargo', 'deno', 'node']

/** Commands that print a version where it is not `TOOL --version`. */
const VERSION_COMMANDS: Readonly<Record<string, string>> = {
  go: 'go version',
  python: 'python3 --version',
  java: 'java -version 2>&1',
}

/** Time limit of a query in a sandbox, in milliseconds. */
const TIMEOUT_MS = 10_000

/** The tools of a sandbox, each asked for once. */
export class SandboxMachine implements Machine {
  readonly #sandbox: Sandbox
  readonly #versions = new Map<string, Promise<readonly Toolchain[]>>()
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
   * Returns the versions of a tool.
   *
   * @throws ComputeError if the sandbox is gone
   */
  toolchains(tool: string): Promise<readonly Toolchain[]> {
    const known = this.#versions.get(tool)
    if (known !== undefined) return known
    const versions = this.#ask(tool)
    this.#versions.set(tool, versions)
    return versions
  }

  async #ask(tool: string): Promise<readonly Toolchain[]> {
    const program = shellQuote([tool === 'python' ? 'python3' : tool])
    const output = await this.#run(
      `command -v ${program} && ${VERSION_COMMANDS[tool] ?? `${program} --version`}`,
    )
    const [path = '', ...rest] = output.split('\n')
    const version = /\d+(?:\.\d+)+|\d+/.exec(rest.join('\n'))?.[0]
    if (!path.startsWith('/') || version === undefined) return []
    return [{ tool, version, path, bin: path.slice(0, path.lastIndexOf('/')), isDefault: true }]
  }

  async #query(names: readonly string[]): Promise<ReadonlySet<string>> {
    const command = `for name in "$@"; do command -v "$name" >/dev/null 2>&1 && echo "$name"; done; true`
    const output = await this.#run(`set -- ${shellQuote(names)}; ${command}`)
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
