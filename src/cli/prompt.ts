import { CommandError } from './errors.ts'
import type { ProcessContext } from './process-context.ts'

/** Milliseconds for which earlier input is read and discarded before a prompt. */
const DISCARD_MS = 30

/** Milliseconds within which the next line of a paste arrives. */
const PASTE_MS = 50

/** Control characters. In raw mode Ctrl-C sends no signal. */
const CTRL_C = '\x03'
const CTRL_D = '\x04'
const CTRL_U = '\x15'

/** How a prompt treats input that was typed before it. */
type TypeAhead = 'counts' | 'is thrown away'

/**
 * Asks for a line at the terminal, or for several pasted at once. Ctrl-C raises SIGINT, whose handler has to abort
 * `signal`.
 *
 * @param signal ends the prompt if no answer is needed any more
 * @returns null if none is given, after Ctrl-D or `signal`
 */
export async function promptLine(
  prompt: string,
  signal: AbortSignal,
  typedBefore: TypeAhead = 'is thrown away',
): Promise<string | null> {
  if (typedBefore === 'is thrown away') await discardTyped()
  if (signal.aborted) return null
  return readLines(prompt, signal)
}

/** Reads and discards pending input. Ctrl-C still raises SIGINT. */
async function discardTyped(): Promise<void> {
  const { stdin } = process
  const discard = (data: Buffer): void => {
    if (data.includes(CTRL_C)) interrupt()
  }
  stdin.setRawMode(true)
  stdin.on('data', discard)
  stdin.resume()
  await Bun.sleep(DISCARD_MS)
  stdin.off('data', discard)
  stdin.pause()
  stdin.setRawMode(false)
}

async function readLines(prompt: string, signal: AbortSignal): Promise<string | null> {
  const { createInterface } = await import('node:readline')
  const { promise, resolve } = Promise.withResolvers<string | null>()
  const lines = createInterface({ input: process.stdin, output: process.stderr, terminal: true })
  const close = (): void => lines.close()
  const typed: string[] = []
  let timer: Timer | undefined
  lines.on('line', (line) => {
    typed.push(withoutControls(line))
    clearTimeout(timer)
    // The last line of a paste may be incomplete. The person then continues it.
    timer = setTimeout(() => lines.line === '' && close(), PASTE_MS)
  })
  lines.once('close', () => {
    clearTimeout(timer)
    signal.removeEventListener('abort', close)
    process.stdin.pause()
    const given = typed.length > 0 && !signal.aborted
    // Later output starts on a new line.
    if (!given && !signal.aborted) process.stderr.write('\n')
    resolve(given ? typed.join('\n') : null)
  })
  lines.on('SIGINT', interrupt)
  // Redraws the prompt after Ctrl-Z and `fg`.
  lines.on('SIGCONT', () => lines.prompt(true))
  signal.addEventListener('abort', close, { once: true })
  lines.setPrompt(prompt)
  lines.prompt()
  return promise
}

const interrupt = (): void => void process.kill(process.pid, 'SIGINT')

/** Removes control characters of keys that do not edit the line, such as Ctrl-\. */
const withoutControls = (line: string): string => line.replace(/(?!\t)\p{Cc}/gu, '')

/**
 * Asks a person for values, one after the other, without echo.
 *
 * @param prompts a prompt for each value
 * @throws CommandError with exit code 130 after Ctrl-C or Ctrl-D
 */
export async function promptHidden(
  prompts: readonly string[],
  { stderr }: ProcessContext,
): Promise<string[]> {
  const { stdin } = process
  const typed = characters(stdin)
  stdin.setRawMode(true)
  try {
    const values: string[] = []
    for (const prompt of prompts) {
      await stderr.write(`${prompt}: `)
      values.push(await readLine(typed).finally(() => stderr.write('\n')))
    }
    return values
  } finally {
    stdin.setRawMode(false)
    stdin.pause()
  }
}

async function readLine(typed: AsyncGenerator<string, void>): Promise<string> {
  let line: string[] = []
  for (;;) {
    const { value: character = CTRL_D } = await typed.next()
    if (character === CTRL_C || character === CTRL_D)
      throw new CommandError('Given up; nothing was set.', 130)
    if (character === '\r' || character === '\n') return line.join('')
    if (character === '\x7f' || character === '\b') line.pop()
    else if (character === CTRL_U) line = []
    else line.push(character)
  }
}

async function* characters(stdin: NodeJS.ReadStream): AsyncGenerator<string, void> {
  stdin.setEncoding('utf8')
  for await (const chunk of stdin as AsyncIterable<string>) yield* chunk
}
