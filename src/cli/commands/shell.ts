import { UsageError } from '../../errors.ts'
import { action } from '../command.ts'
import { findTerminal, lastTerminal } from '../nouns/terminals.ts'
import { optionalText, textOption } from '../options.ts'
import { paint, printable } from '../output.ts'

/** `berth shell` */
export const shell = action({
  usage: 'shell [SERVER]',
  operations: ['terminals.attach'],
  summary: 'sit down at a server',
  description: 'Opens a shell on a server, or attaches to a terminal that was left.',
  access: 'api',
  json: null,
  hints: { "unknown option '--list'": '"berth terminals" lists what runs.\n' },
  options: {
    attach: optionalText('NAME', 'attach to a terminal that runs, by its name or id (default: the newest)'),
    name: textOption('NAME', 'what the new one is called (default: by the shell)'),
    cwd: textOption('PATH', 'directory of the workspace that it begins in'),
  },
  help: `
The exit code is that of the shell. At the start of a line ~. leaves it running, and ~? lists the other escapes.
"berth terminals" lists what runs. SERVER may be the name of a project too: the shell then begins on its server, in the project's directory. If berth stops, the shell ends, with the exit code 255 here.

Examples:
  berth shell
  berth shell shop --name deploy
  berth shell shop --attach deploy
  berth shell --attach
`,
  async run({ session: { context }, options, connect, place }) {
    const { attachHere, requireTerminal } = await import('../shell/open.ts')
    const { attach: attached, name, cwd } = options
    if (attached !== undefined && (name !== undefined || cwd !== undefined))
      throw new UsageError('--attach takes a terminal as it is: --name and --cwd are for a new one.')
    requireTerminal(context, 'For a command in a script use: berth exec SERVER -- COMMAND')
    const client = await connect()
    const { serverId, directory } = await place()
    const { stderr } = context
    if (attached === undefined) {
      await stderr.write(`${paint(stderr, 'dim', '~. at the beginning of a line leaves it running.')}\n`)
      const body = { name, cwd: cwd ?? directory }
      return attachHere(client, context, { serverId, body, saysEnd: true })
    }
    const terminal =
      attached === true
        ? await lastTerminal(client, serverId)
        : await findTerminal(client, serverId, attached)
    if (attached === true)
      await stderr.write(`${paint(stderr, 'dim', `Attached to ${printable(terminal.name)}.`)}\n`)
    return attachHere(client, context, { serverId, terminal, saysEnd: true })
  },
})
