import { UsageError } from '../../errors.ts'
import { action } from '../command.ts'
import { CommandError } from '../errors.ts'
import { flag } from '../options.ts'
import { printable } from '../output.ts'

/** `berth use` */
export const use = action({
  usage: 'use [CHOICE]',
  shownUsage: '[SERVER] [options]',
  summary: 'choose the server that commands mean here',
  description:
    'Chooses the server that commands mean in this directory and below it where none is named. Without SERVER it prints which one that is.',
  access: 'api',
  json: 'print the choice as JSON, for programs',
  options: { none: flag('take the choice back') },
  help: `
A server is named by its id, the beginning of its id, or its label. Where there is only one, it is meant anyway.
The choice is kept in the file use.json of ~/.config/berth (or $XDG_CONFIG_HOME/berth).

Examples:
  berth use shop
  berth exec -- ls
  berth use --none
`,
  async run({ session: { context }, args: [named], options, connect, idOf, print }) {
    if (named !== undefined && options.none) throw new UsageError('Give a server or --none, not both.')
    const [client, { USED_SERVERS, deletedChoice }] = await Promise.all([
      connect(),
      import('../directory-choices.ts'),
    ])
    const { baseUrl } = client
    if (options.none) {
      const { servers } = await client.call('servers.list')
      const isThere = (given: string): boolean => servers.some(({ id }) => id === given)
      const before = USED_SERVERS.keep(context, baseUrl, null, isThere)
      const server_id = null
      return print({ server_id, directory: null }, () =>
        before === null ? 'No server was chosen here.\n' : `${before.id} is not meant here any more.\n`,
      )
    }
    const given = await idOf('CHOICE', named)
    if (given !== undefined) {
      // A whole id was not looked up.
      const { server } = await client.call('servers.get', { params: { serverId: given } })
      USED_SERVERS.keep(context, baseUrl, server.id)
      const label = server.task === '' ? '' : ` (${printable(server.task)})`
      return print(
        { server_id: server.id, directory: context.cwd },
        () => `Commands in ${printable(context.cwd)} now mean ${server.id}${label}.\n`,
      )
    }
    const { servers } = await client.call('servers.list')
    const used = USED_SERVERS.find(context, baseUrl, (given) => servers.some(({ id }) => id === given))
    if (used === null)
      throw new CommandError(
        'No server is chosen here. Choose one with "berth use SERVER"; "berth servers" lists them.',
      )
    const found = servers.find(({ id }) => id === used.id)
    if (found === undefined) throw new CommandError(deletedChoice(used))
    return print({ server_id: used.id, directory: used.directory }, () => {
      const label = found.task ? ` (${printable(found.task)})` : ''
      return `${used.id}${label}, chosen for ${printable(used.directory)}.\n`
    })
  },
})
