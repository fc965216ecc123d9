import type { Client } from './client.ts'
import { CommandError } from './errors.ts'
import { untilInterrupted } from './interrupt.ts'
import { paint } from './output.ts'
import { isInteractive, type ProcessContext } from './process-context.ts'
import { promptLine } from './prompt.ts'

/**
 * Asks a person before something is lost. Asks nobody without a terminal, and not if the instance removes everything
 * when it stops.
 *
 * @param describe returns what is lost, as a sentence; null for nothing
 * @throws CommandError if the person does not say yes; with exit code 130 after Ctrl-C
 */
export async function confirmLoss(
  describe: () => Promise<string | null>,
  connect: () => Promise<Client>,
  context: ProcessContext,
): Promise<void> {
  if (!isInteractive(context) || !(await isKept(await connect()))) return
  const loss = await describe()
  if (loss !== null && !(await askYes(`${loss} Go on?`, context)))
    throw new CommandError('Nothing was changed.')
}

/**
 * Asks a person a question that yes or no answers.
 *
 * @param isYesByDefault whether an empty answer is yes, for what loses nothing
 * @returns whether the answer is yes
 * @throws CommandError with exit code 130 after Ctrl-C
 */
export async function askYes(
  question: string,
  context: ProcessContext,
  isYesByDefault = false,
): Promise<boolean> {
  let answer: string | null = null
  const interrupted = await untilInterrupted(async (signal) => {
    answer = await promptLine(
      `${question} ${paint(context.stderr, 'bold', isYesByDefault ? '[Y/n]' : '[y/N]')} `,
      signal,
    )
    signal.throwIfAborted()
    return 0
  })
  if (interrupted !== 0) throw new CommandError('Nothing was changed.', interrupted)
  const given = (answer as string | null)?.trim()
  return given === '' ? isYesByDefault : /^y(?:es)?$/i.test(given ?? '')
}

/** Reports whether an instance keeps its data after it stops. One that does not say is taken for one that does. */
export async function isKept(client: Client): Promise<boolean> {
  try {
    return !(await client.call('control.health')).ephemeral
  } catch (error) {
    if (error instanceof CommandError) return true
    throw error
  }
}
