import { createInterface } from 'node:readline'
import type { Terminal } from '../terminal.ts'

/** Whether there is a person who can be asked. */
export const canAsk = ({ stdin, stderr }: Terminal): boolean => stdin.isTTY && stderr.isTTY

/**
 * Asks for a line at the terminal. Ctrl-C becomes SIGINT, which is to fire `signal`.
 *
 * @param signal ends the asking, when an answer is wanted no more
 * @returns null where none is given: Ctrl-D, or `signal`
 */
export function askLine(prompt: string, signal: AbortSignal): Promise<string | null> {
  const { promise, resolve } = Promise.withResolvers<string | null>()
  const lines = createInterface({ input: process.stdin, output: process.stderr, terminal: true })
  const close = (): void => lines.close()
  let line: string | null = null
  lines.once('line', (typed) => {
    line = typed
    lines.close()
  })
  lines.once('close', () => {
    signal.removeEventListener('abort', close)
    process.stdin.pause()
    // What follows does not go on behind the prompt.
    if (line === null && !signal.aborted) process.stderr.write('\n')
    resolve(line)
  })
  // The terminal makes no signal of it while a line is edited.
  lines.on('SIGINT', () => process.kill(process.pid, 'SIGINT'))
  if (signal.aborted) close()
  else {
    signal.addEventListener('abort', close, { once: true })
    lines.setPrompt(prompt)
    lines.prompt()
  }
  return promise
}
