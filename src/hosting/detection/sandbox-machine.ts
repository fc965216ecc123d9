import { dirname } from 'node:path'
import { commandOf, isToolName, type Toolchain, versionArguments } from '../../compute/local/toolchains.ts'
import type { Sandbox } from '../../compute/sandbox.ts'
import { shellQuote } from '../../runtime/shell-quote.ts'
import { checkOf, type Machine, type ProgramResult, type ToolCheck } from './machine.ts'

/** All tools that detection asks for. One command looks for all of them. */
const ASKED = ['npm', 'pnpm', 'yarn', 'python3', 'uv', 'poetry', 'pipenv', 'go', 'cargo', 'deno', 'node']

/** Time limit of a query in a sandbox, in milliseconds. */
const TIMEOUT_MS = 10_000

/** The tools of a sandbox, each asked for once. */
export class SandboxMachine implements Machine {
  readonly #sandbox: Sandbox
  readonly #versions = new Map<string, Promise<readonly Toolchain[]>>()
  readonly #checks = new Map<string, Promise<ToolCheck>>()
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

  /**
   * Runs a program.
   *
   * @throws ComputeError if the sandbox is gone
   */
  check(program: string, options = versionArguments(program)): Promise<ToolCheck> {
    const command = shellQuote([program, ...options])
    const known = this.#checks.get(command)
    if (known !== undefined) return known
    const check = this.#run(command).then(checkOf)
    this.#checks.set(command, check)
    return check
  }

  get memoryBytes(): number {
    return this.#sandbox.faultInjection.memory.limit
  }

  async #ask(tool: string): Promise<readonly Toolchain[]> {
    const found = isToolName(tool) ? await this.#sandbox.toolchains(tool) : null
    if (found !== null && found.length > 0) return found
    const { stdout } = await this.#run(`command -v ${shellQuote([commandOf(tool)])}`)
    const path = stdout.trim()
    const check = path.startsWith('/') ? await this.check(path) : null
    if (check === null || !check.works || check.version === null) return []
    return [{ tool, version: check.version, path, bin: dirname(path), isDefault: true, source: 'PATH' }]
  }

  async #query(names: readonly string[]): Promise<ReadonlySet<string>> {
    const command = `for name in "$@"; do command -v "$name" >/dev/null 2>&1 && echo "$name"; done; true`
    const { stdout } = await this.#run(`set -- ${shellQuote(names)}; ${command}`)
    return new Set(stdout.split('\n').filter(Boolean))
  }

  /** Runs a command to its end. */
  async #run(command: string): Promise<ProgramResult> {
    const decoders = { stdout: new TextDecoder(), stderr: new TextDecoder() }
    const output = { stdout: '', stderr: '' }
    const { exit } = this.#sandbox.exec({
      command,
      timeoutMs: TIMEOUT_MS,
      outputLimit: 64 * 1024,
      onOutput(stream, data) {
        output[stream] += decoders[stream].decode(data, { stream: true })
      },
    })
    const { exitCode } = await exit
    return { exitCode, ...output }
  }
}
