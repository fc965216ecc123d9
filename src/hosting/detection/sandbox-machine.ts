import { dirname } from 'node:path'
import type { Sandbox } from '../../compute/sandbox.ts'
import { commandOf, isToolName, type Toolchain, versionArguments } from '../../compute/tools.ts'
import { shellQuote } from '../../runtime/shell-quote.ts'
import { checkOf, type Machine, type ProgramResult, type ToolCheck } from './machine.ts'

/** Time limit of a query in a sandbox, in milliseconds. */
const TIMEOUT_MS = 10_000

/** The tools of a sandbox, each asked for once. */
export class SandboxMachine implements Machine {
  readonly #sandbox: Sandbox
  readonly #paths = new Map<string, Promise<string>>()
  readonly #versions = new Map<string, Promise<readonly Toolchain[]>>()
  readonly #checks = new Map<string, Promise<ToolCheck>>()

  constructor(sandbox: Sandbox) {
    this.#sandbox = sandbox
  }

  /**
   * Reports whether a program is installed.
   *
   * @throws ComputeError if the sandbox is gone
   */
  async has(name: string): Promise<boolean> {
    return (await this.#find(name)) !== ''
  }

  /**
   * Returns the versions of a tool.
   *
   * @throws ComputeError if the sandbox is gone
   */
  toolchains(tool: string): Promise<readonly Toolchain[]> {
    return once(this.#versions, tool, () => this.#ask(tool))
  }

  /**
   * Runs a program.
   *
   * @throws ComputeError if the sandbox is gone
   */
  check(program: string, options = versionArguments(program)): Promise<ToolCheck> {
    const command = shellQuote([program, ...options])
    return once(this.#checks, command, async () => checkOf(await this.#run(command)))
  }

  get hasImage(): boolean {
    return this.#sandbox.hasImage ?? false
  }

  get memoryBytes(): number {
    return this.#sandbox.faultInjection.memory.limit
  }

  async #ask(tool: string): Promise<readonly Toolchain[]> {
    const found = isToolName(tool) ? await this.#sandbox.toolchains(tool) : null
    if (found !== null && found.length > 0) return found
    const path = await this.#find(commandOf(tool))
    const check = path.startsWith('/') ? await this.check(path) : null
    if (check === null || !check.works || check.version === null) return []
    return [{ tool, version: check.version, path, bin: dirname(path), isDefault: true, source: 'PATH' }]
  }

  /** Returns the path of a program; empty if it is not on the PATH. */
  #find(name: string): Promise<string> {
    const command = `command -v ${shellQuote([name])}`
    return once(this.#paths, name, async () => (await this.#run(command)).stdout.trim())
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

/** Returns the value of a key, which is made the first time. */
function once<Value>(known: Map<string, Value>, key: string, make: () => Value): Value {
  const value = known.get(key) ?? make()
  known.set(key, value)
  return value
}
