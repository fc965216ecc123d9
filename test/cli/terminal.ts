import { bareEnvironment } from './command.ts'

/** A program on a pseudo-terminal, driven like a person would. */
export interface Typed extends AsyncDisposable {
  readonly pid: number
  /** Sends keys. */
  type(keys: string): void
  /** Resolves when the output so far holds the text; rejects after half a minute, or `withinMs`, with what came instead. */
  shows(text: string | RegExp, withinMs?: number): Promise<void>
  /** Changes its size, as a person does who resizes the window. */
  resize(columns: number, rows: number): void
  /** All output so far. */
  output(): string
  /** Resolves when it has ended and all its output has come. */
  readonly exited: Promise<number>
}

/** Starts a program on a pseudo-terminal of 200 columns, or as many as are given. */
export function onTerminal(
  command: readonly string[],
  { cwd, env = {}, columns = 200 }: { cwd: string; env?: Record<string, string>; columns?: number },
): Typed {
  let output = ''
  let changed = () => {}
  const decoder = new TextDecoder()
  const closed = Promise.withResolvers<void>()
  const child = Bun.spawn([...command], {
    cwd,
    env: bareEnvironment({ TERM: 'xterm-256color', ...env }),
    terminal: {
      cols: columns,
      rows: 50,
      data(_terminal, data) {
        output += decoder.decode(data, { stream: true })
        changed()
      },
      exit: () => closed.resolve(),
    },
  })
  const holds = (text: string | RegExp) =>
    typeof text === 'string' ? output.includes(text) : text.test(output)
  return {
    pid: child.pid,
    type: (keys) => void child.terminal?.write(keys),
    resize: (columns, rows) => void child.terminal?.resize(columns, rows),
    output: () => output,
    exited: closed.promise.then(() => child.exited),
    shows: (text, withinMs = 30_000) =>
      new Promise((resolve, reject) => {
        const timer = setTimeout(
          () =>
            reject(
              new Error(
                `${text} did not show within ${withinMs} ms; the output was ${JSON.stringify(output)}`,
              ),
            ),
          withinMs,
        )
        changed = () => {
          if (!holds(text)) return
          clearTimeout(timer)
          resolve()
        }
        changed()
      }),
    async [Symbol.asyncDispose]() {
      child.kill('SIGKILL')
      await child.exited
      child.terminal?.close()
    },
  }
}
