import type { ExecExit, Sandbox, TerminalCommand, TerminalSize } from '../../src/compute/sandbox.ts'
import { until } from './bench.ts'

type Rest = Partial<Omit<TerminalCommand, 'command' | 'onOutput'>>

/** A command on a terminal, and what it has shown so far. */
export interface OpenTerminal {
  readonly text: string
  readonly exit: Promise<ExecExit>
  readonly pid: Promise<number | null>
  readonly unread: number
  type(text: string): void
  resize(size: TerminalSize): void
  hangUp(): void
  cancel(graceMs?: number): void
  /** Waits until this has been shown. */
  shows(text: string): Promise<void>
}

/** Starts a command on a terminal of 120 columns and 40 rows. */
export function openTerminal(sandbox: Sandbox, command: string, rest: Rest = {}): OpenTerminal {
  const decoder = new TextDecoder()
  const shown = { text: '' }
  const execution = sandbox.terminal({
    command,
    size: { columns: 120, rows: 40 },
    timeoutMs: 20_000,
    onOutput(data) {
      shown.text += decoder.decode(data, { stream: true })
    },
    ...rest,
  })
  return {
    get text() {
      return shown.text
    },
    exit: execution.exit,
    pid: execution.pid,
    get unread() {
      return execution.unread
    },
    hangUp: () => execution.hangUp(),
    type: (text) => execution.write(new TextEncoder().encode(text)),
    resize: (size) => execution.resize(size),
    cancel: (graceMs) => execution.cancel(graceMs),
    async shows(text) {
      await until(
        `${JSON.stringify(text)} on the terminal, not ${JSON.stringify(shown.text.slice(-300))}`,
        () => shown.text.includes(text),
      )
    },
  }
}

/** Runs a command on a terminal to its end. */
export async function show(
  sandbox: Sandbox,
  command: string,
  rest: Rest = {},
): Promise<{ exitCode: number; text: string }> {
  const terminal = openTerminal(sandbox, command, rest)
  const { exitCode } = await terminal.exit
  return { exitCode, text: terminal.text }
}
