import { unfinished } from '../../runtime/decode.ts'
import { type PrintedFields, printedFields } from '../../runtime/printed.ts'
import type { KeptOutput } from './kept-output.ts'
import type { LiveExecution } from './live-execution.ts'
import type { ExecResult } from './model.ts'
import type { Stream } from './output.ts'

/** How a request to run a command responds before the command ends. */
export interface Leave {
  /** Physical milliseconds after which it responds, and the command goes on as an execution. */
  readonly afterMs: number
  /** Reports whether the client gets all of a result. If not, the command becomes an execution too, which has the rest. */
  readonly fits: (result: LeftResult) => boolean
  /** Receives the output as it is printed, until the response. */
  readonly onOutput?: ((stream: Stream, data: Uint8Array) => void) | undefined
}

/** The result of a command, or its output so far with the id of the execution that it goes on as. */
export type LeftResult = Omit<ExecResult, 'exitCode'> & {
  exitCode?: number
  status?: 'running'
  executionId?: string
  /** Bytes that it has printed, kept or not. */
  stdoutBytes: number
  stderrBytes: number
}

/** The requests to run a command that respond before it ends. Tools of MCP make them; over HTTP a request waits. */
export class Leaves {
  readonly #leaves = new WeakMap<Request, Leave>()

  set(request: Request, leave: Leave): void {
    this.#leaves.set(request, leave)
  }

  /** Returns how a request responds before its command ends; undefined if it waits for the end. */
  of(request: Request): Leave | undefined {
    return this.#leaves.get(request)
  }
}

/** Returns the result of a command as far as it has come. */
export function leftResult({ end, facts }: LiveExecution, output: KeptOutput): LeftResult {
  const { stdout: stdoutBytes, stderr: stderrBytes } = output.counts
  const { stdout, stderr } = output.dropped
  const truncated = stdout + stderr > 0
  const isOver = end !== null
  const printed = {
    ...textOf('stdout', output, isOver),
    ...textOf('stderr', output, isOver),
  } as PrintedFields
  const counts = { stdoutBytes, stderrBytes }
  if (end === null)
    return { ...printed, timedOut: false, truncated, status: 'running', executionId: facts.id, ...counts }
  const { exitCode = 0, timedOut = false, refused } = end.exit ?? {}
  return { ...printed, exitCode, timedOut, truncated, ...(refused && { refused }), ...counts }
}

/** Returns a stream as fields of a result: as text, and exactly where its bytes are not UTF-8 and all are kept. */
function textOf(stream: Stream, output: KeptOutput, isOver: boolean): Partial<PrintedFields> {
  const { head, tail, dropped } = output.all(stream)
  const decode = (bytes: Uint8Array): string => new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes)
  if (dropped > 0) return { [stream]: `${decode(head)}\n[… ${dropped} bytes left out …]\n${decode(tail)}` }
  const all = Buffer.concat([head, tail])
  // A character that is not complete is left for later.
  const bytes = isOver ? all : all.subarray(0, all.length - unfinished(all))
  return printedFields(stream, bytes)
}
