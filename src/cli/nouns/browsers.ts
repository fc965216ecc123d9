import type { ResponseOf } from '../../route-client/client.ts'
import { call, type Noun, rows } from '../command.ts'
import { type NameWords, namedBy } from '../names.ts'
import type { Column } from '../table.ts'

type Browser = ResponseOf<'browsers.list'>['browsers'][number]

const COLUMNS: readonly Column<Browser>[] = [
  { heading: 'ID', cell: ({ id }) => id },
  { heading: 'NAME', cell: ({ name }) => name, elastic: true },
  { heading: 'CONTROL API', cell: ({ is_admin }) => (is_admin ? 'yes' : 'no'), minor: 2 },
  { heading: 'LAST USED', cell: ({ last_used_at }) => last_used_at, minor: 1 },
  { heading: 'SIGNED IN', cell: ({ created_at }) => created_at, minor: 3 },
]

const WORDS: NameWords = {
  one: 'browser',
  by: ['name'],
  listedBy: 'berth browsers',
  none: 'Sign one in with "berth open", or elsewhere with the link of "berth open --print".',
}

/** `berth browsers` */
export const browsersNoun: Noun = {
  name: 'browsers',
  summary: 'browsers that are signed in',
  description:
    'Lists the browsers that are signed in to the account, and signs them out. Plain "berth browsers" lists them; "berth open" signs one in.',
  names: [
    {
      placeholder: 'BROWSER',
      words: WORDS,
      list: namedBy(
        'name',
        async (client, signal) => (await client.call('browsers.list', { signal })).browsers,
      ),
    },
  ],
  commands: [
    call('browsers.list', {
      usage: 'list',
      description: 'list the browsers, newest first',
      show: rows(
        'browsers',
        COLUMNS,
        'No browser is signed in. Sign one in with "berth open", or elsewhere with the link of "berth open --print".\n',
      ),
    }),
    call('browsers.delete', {
      usage: 'delete <BROWSER>',
      description: 'sign a browser out',
      request: async ([named], _, { idOf }) => ({ params: { browserId: await idOf('BROWSER', named) } }),
      show: ({ id }) => `${id} is signed out.\n`,
    }),
  ],
}
