import { createInterface } from 'node:readline'
import { CommandError } from './errors.ts'
import type { ProcessContext } from './process-context.ts'

/** Milliseconds for which what was typed before the question is thrown away. */
const DISCARD_MS = 30

/** Milliseconds in which the next line of a paste comes. */
const PASTE_MS = 50

/** Control characters. In raw mode Ctrl-C sends no signal. */
const CTRL_C = '\x03'
const CTRL_D = '\x04'
const CTRL_U = '\x15'

/** Whether there is a person who can be asked. */
export const isInteractive = ({ stdin, stderr }: ProcessContext): boolean => stdin.isTTY && stderr.isTTY

/** What becomes of what was typed before the question: it answers it, or was meant for something else. */
export type TypeAhead = 'counts' | 'is thrown away'

/**
 * Asks for a line at the terminal, or for the lines that are pasted at once. Ctrl-C becomes SIGINT, which is to fire
 * `signal`.
 *
 * @param signal ends the asking, when an answer is wanted no more
 * @returns null where none is given: Ctrl-D, or `signal`
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

/** Reads what waits on the terminal, and forgets it, but for Ctrl-C. */
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

function readLines(prompt: string, signal: AbortSignal): Promise<string | null> {
  const { promise, resolve } = Promise.withResolvers<string | null>()
  const lines = createInterface({ input: process.stdin, output: process.stderr, terminal: true })
  const close = (): void => lines.close()
  const typed: string[] = []
  let timer: Timer | undefined
  lines.on('line', (line) => {
    typed.push(withoutControls(line))
    clearTimeout(timer)
    // The last line of a paste may have no end: the person goes on typing it.
    timer = setTimeout(() => lines.line === '' && close(), PASTE_MS)
  })
  lines.once('close', () => {
    clearTimeout(timer)
    signal.removeEventListener('abort', close)
    process.stdin.pause()
    const given = typed.length > 0 && !signal.aborted
    // What follows does not go on behind the prompt.
    if (!given && !signal.aborted) process.stderr.write('\n')
    resolve(given ? typed.join('\n') : null)
  })
  lines.on('SIGINT', interrupt)
  // After Ctrl-Z, and a while in the background.
  lines.on('SIGCONT', () => lines.prompt(true))
  signal.addEventListener('abort', close, { once: true })
  lines.setPrompt(prompt)
  lines.prompt()
  return promise
}

const interrupt = (): void => void process.kill(process.pid, 'SIGINT')

/** Keys that no line is edited with, such as Ctrl-\, come as characters. */
const withoutControls = (line: string): string => line.replace(/(?!\t)\p{Cc}/gu, '')

/**
 * Asks a person for values, one after the other, and shows nothing of what is typed.
 *
 * @param prompts what to ask for
 * @throws CommandError with exit code 130 where it is given up with Ctrl-C or Ctrl-D
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
