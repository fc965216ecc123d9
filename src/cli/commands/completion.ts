import { Argument, type Command } from 'commander'
import type { Server } from '../../resources/servers/model.ts'
import { type Candidate, complete, SHELLS, type Shell } from '../complete.ts'
import { connect, type Session } from '../session.ts'

/** Long enough for an instance on this machine; a person at the TAB key waits no longer. */
const SERVERS_WITHIN_MS = 500

const MORE = `
Load it for good:
  bash   echo 'source <(berth completion bash)' >> ~/.bashrc
  zsh    echo 'source <(berth completion zsh)' >> ~/.zshrc     (behind compinit)
  fish   berth completion fish > ~/.config/fish/completions/berth.fish
`

/** Adds `completion` and the hidden command that the scripts ask. */
export function registerCompletion(program: Command, session: Session): void {
  const { stdout } = session.terminal
  program
    .command('completion')
    .addArgument(new Argument('<SHELL>', 'for which shell').choices(SHELLS))
    .summary('print a completion script for the shell')
    .description('Prints a script that completes commands, options, values and server ids.')
    .addHelpText('after', MORE)
    .action(async (shell: Shell) => stdout.write((await import('../shells.ts')).SHELL_SCRIPTS[shell]))

  program
    .command('__complete <SHELL> [WORD...]', { hidden: true })
    .allowUnknownOption()
    .helpOption(false)
    .action(async (shell: Shell, given: string[]) => {
      const words = shell === 'bash' ? joinBroken(given) : given
      const completion = complete(program, words)
      if (completion.kind === 'files' || completion.kind === 'folders')
        return stdout.write(`${completion.kind}\n`)
      const candidates =
        completion.kind === 'words' ? completion.candidates : await serverIds(session, words.at(-1) ?? '')
      // Bash replaces only what stands behind the "=".
      const shown = shell === 'bash' ? candidates.map(withoutOption) : candidates
      const lines = shown.map(({ value, description }) => `${value}\t${description}\n`)
      await stdout.write(`words\n${lines.join('')}`)
    })
}

/** Bash breaks words at "=" and ":"; this puts `--tier = small` together again. */
function joinBroken(words: readonly string[]): string[] {
  const joined: string[] = []
  let open = false
  for (const word of words) {
    const sign = word === '=' || word === ':'
    if (joined.length > 0 && (sign || open)) joined.push(`${joined.pop()}${word}`)
    else joined.push(word)
    open = sign
  }
  return joined
}

const withoutOption = ({ value, description }: Candidate): Candidate => ({
  value: value.startsWith('--') ? value.slice(value.indexOf('=') + 1) : value,
  description,
})

/** The ids of the running instance's servers. Nothing where none answers: a TAB must not print errors. */
async function serverIds(session: Session, current: string): Promise<Candidate[]> {
  try {
    const client = await connect(session, {})
    const { servers } = await client.request<{ servers: Server[] }>('GET', '/servers', {
      signal: AbortSignal.timeout(SERVERS_WITHIN_MS),
    })
    return servers
      .filter(({ id }) => id.startsWith(current))
      .map(({ id, task, status }) => ({
        value: id,
        description: `${status}${task ? `, ${task}` : ''}`.replace(/\s+/g, ' '),
      }))
  } catch {
    return []
  }
}
