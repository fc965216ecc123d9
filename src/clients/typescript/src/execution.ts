import { ConnectionError } from './errors.js'
import { gone, Handle } from './handle.js'
import { OutputCollector, type OutputEvent, textOf } from './output.js'
import type { ExecResult } from './server.js'
import type { ExecutionData } from './shapes.js'

/** A piece of the output of an execution. */
export interface ExecutionOutput {
  readonly stream: 'stdout' | 'stderr'
  readonly text: string
}

export interface Execution extends Readonly<ExecutionData> {}

/** A command that runs on by itself. `await using` ends it at the end of its block. */
export class Execution extends Handle<ExecutionData> implements AsyncDisposable {
  protected get path(): string {
    return `/servers/${this.serverId}/executions/${this.id}`
  }

  protected unwrap(body: unknown): ExecutionData {
    return (body as { execution: ExecutionData }).execution
  }

  /** Reads what it has printed and prints, to its end. A connection that breaks off goes on where it was. */
  async *output(signal?: AbortSignal): AsyncGenerator<ExecutionOutput> {
    for await (const { event, data } of this.#events(signal))
      if (event === 'stdout' || event === 'stderr')
        yield { stream: event, text: textOf(JSON.parse(data) as OutputEvent) }
  }

  /** Waits for its end and returns the kept output. */
  async wait(
    options: {
      onStdout?: (text: string) => void
      onStderr?: (text: string) => void
      signal?: AbortSignal
    } = {},
  ): Promise<ExecResult> {
    const collected = new OutputCollector(options)
    for await (const { event, data } of this.#events(options.signal)) {
      if (event === 'stdout' || event === 'stderr') collected.take(event, JSON.parse(data) as OutputEvent)
      if (event !== 'exit') continue
      await this.refresh(options.signal)
      return collected.result(JSON.parse(data))
    }
    throw new ConnectionError('The connection broke off before the command ended.')
  }

  /**
   * Writes to its standard input, which `openStdin` keeps open.
   *
   * @param end whether the input ends with this
   */
  async write(input: string | Uint8Array, { end = false }: { end?: boolean } = {}): Promise<void> {
    const content =
      typeof input === 'string' ? { text: input } : { base64: Buffer.from(input).toString('base64') }
    await this.transport.json('POST', `${this.path}/input`, { ...content, ...(end && { end }) })
  }

  /** Ends the command if it runs, and removes its record otherwise. */
  async delete(): Promise<void> {
    await this.transport.json('DELETE', this.path)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await gone(this.delete())
  }

  #events(signal?: AbortSignal) {
    return this.transport.events({ path: `${this.path}/output`, signal }, { resumes: true })
  }
}
