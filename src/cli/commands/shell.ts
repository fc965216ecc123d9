import { UsageError } from '../../errors.ts'
import { findTerminal } from '../nouns/terminals.ts'
import { text } from '../options.ts'
import { paint } from '../output.ts'
import { action } from '../runner.ts'

/** `berth shell` */
export const shell = action({
  usage: 'shell [SERVER]',
  operations: ['terminals.attach'],
  summary: 'sit down at a server',
  description: 'Opens a shell on a server, or attaches to a terminal that was left.',
  access: 'api',
  json: null,
  options: {
    attach: text('NAME', 'attach to a terminal that runs, by its name or id'),
    name: text('NAME', 'what the new one is called (default: by the shell)'),
    cwd: text('PATH', 'directory of the workspace that it begins in'),
  },
  help: `
The exit code is that of the shell. At the start of a line ~. leaves it running, and ~? lists the other escapes.
"berth terminals" lists what runs. If berth stops, the shell ends, with the exit code 255 here.

Examples:
  berth shell
  berth shell shop --name deploy
  berth shell shop --attach deploy
`,
  async run({ session: { context }, options, connect, server }) {
    const { attachHere, requireTerminal } = await import('../shell/open.ts')
    const { attach: attached, name, cwd } = options
    if (attached !== undefined && (name !== undefined || cwd !== undefined))
      throw new UsageError('--attach takes a terminal as it is: --name and --cwd are for a new one.')
    requireTerminal(context, 'For a command in a script use: berth exec SERVER -- COMMAND')
    const client = await connect()
    const serverId = await server()
    if (attached === undefined) {
      const { stderr } = context
      await stderr.write(`${paint(stderr, 'dim', '~. at the beginning of a line leaves it running.')}\n`)
      return attachHere(client, context, { serverId, body: { name, cwd } })
    }
    return attachHere(client, context, { serverId, terminal: await findTerminal(client, serverId, attached) })
  },
})
