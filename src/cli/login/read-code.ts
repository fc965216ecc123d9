import { CommandError } from '../errors.ts'
import { askLine, canAsk } from '../tasks/prompt.ts'
import type { Terminal } from '../terminal.ts'

/** Bytes within which a line with a code ends. */
const LINE_BYTES = 1_000

/**
 * Reads the code that a person types, or the first line of standard input where that is no terminal.
 *
 * @throws CommandError where none comes; the signal's reason when it fires
 */
export async function readCode(terminal: Terminal, signal: AbortSignal): Promise<string> {
  const line = canAsk(terminal) ? await typedLine(signal) : await firstLine(signal)
  signal.throwIfAborted()
  const code = line?.trim() ?? ''
  if (code !== '') return code
  throw new CommandError('No code was given; nothing was changed. Run "berth login" again.')
}

/** The first line with something on it: whoever waits for the prompt may press Enter. */
async function typedLine(signal: AbortSignal): Promise<string | null> {
  for (;;) {
    // The address stands there before the prompt, and a code that is pasted at once was meant for nothing else.
    const lines = await askLine('Code: ', signal, 'counts')
    const line = lines === null ? null : lines.split('\n').find((text) => text.trim() !== '')
    if (line !== undefined) return line
  }
}

/** Whoever writes it may keep standard input open. */
async function firstLine(signal: AbortSignal): Promise<string> {
  const reader = Bun.stdin.stream().getReader()
  const end = (): void => void reader.cancel()
  signal.addEventListener('abort', end, { once: true })
  const decoder = new TextDecoder()
  let text = ''
  while (!signal.aborted && text.length < LINE_BYTES && !text.includes('\n')) {
    const { value, done } = await reader.read()
    if (done) break
    text += decoder.decode(value, { stream: true })
  }
  signal.removeEventListener('abort', end)
  await reader.cancel()
  return text.split('\n')[0] ?? ''
}
