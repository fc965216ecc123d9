import { CommandError } from './errors.ts'
import type { Terminal } from './terminal.ts'

const CTRL_C = '\x03'
const CTRL_D = '\x04'
const CTRL_U = '\x15'

/**
 * Asks a person for values, one after the other, and shows nothing of what is typed.
 *
 * @param prompts what to ask for
 * @throws CommandError with exit code 130 where it is given up with Ctrl-C or Ctrl-D
 */
export async function askHidden(prompts: readonly string[], { stderr }: Terminal): Promise<string[]> {
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
