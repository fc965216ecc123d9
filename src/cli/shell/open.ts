import type { PartsOf, ResponseOf } from '../../route-client/client.ts'
import type { Client } from '../client.ts'
import { CommandError } from '../errors.ts'
import { paint, printable } from '../output.ts'
import type { ProcessContext } from '../process-context.ts'
import { attach, ownSize } from './attach.ts'

/** Exit code where the program did not end, but the attachment to it. */
const CONNECTION_LOST = 255

/** A terminal to attach to: one that runs, or a new one. */
type TerminalWish = {
  readonly serverId: string
  /** Whether to say that the program has ended. */
  readonly saysEnd?: true
} & (
  | { readonly terminal: ResponseOf<'terminals.get'>['terminal'] }
  | { readonly body: PartsOf<'terminals.create'>['body'] }
)

/**
 * Checks that a person sits at both ends of this process.
 *
 * @throws CommandError if not
 */
export function requireTerminal({ stdin, stdout }: ProcessContext, instead: string): void {
  if (stdin.isTTY && stdout.isTTY) return
  throw new CommandError(`This takes a terminal for its input and its output. ${instead}`)
}

/**
 * Attaches this process's terminal to one of a server, and says on stderr how it ended if the program did not.
 *
 * @returns the program's exit code; 0 if it was left running, 255 if berth has ended it or the connection was lost
 */
export async function attachHere(
  client: Client,
  { stderr }: ProcessContext,
  wish: TerminalWish,
): Promise<number> {
  const { serverId } = wish
  const { id, name } = 'terminal' in wish ? wish.terminal : await create(client, wish)
  const end = await attach(client, { serverId, terminalId: id })
  if (end.type === 'exited') {
    const how = end.exitCode === 0 ? '' : `, with exit code ${end.exitCode}`
    if (wish.saysEnd) await stderr.write(`${paint(stderr, 'dim', `${printable(name)} has ended${how}.`)}\n`)
    return end.exitCode
  }
  if (end.type === 'left') {
    await stderr.write(
      `\nberth: ${name} runs on. Attach again with: berth shell ${serverId} --attach ${name}\n`,
    )
    return 0
  }
  await stderr.write(`\nberth: the terminal is gone: ${printable(end.reason)}.\n`)
  return CONNECTION_LOST
}

async function create(
  client: Client,
  { serverId, body }: Extract<TerminalWish, { body: unknown }>,
): Promise<ResponseOf<'terminals.get'>['terminal']> {
  const { terminal } = await client.call('terminals.create', {
    params: { serverId },
    body: { ...body, ...ownSize() },
  })
  return terminal
}
