import type { ResponseOf } from '../../route-client/client.ts'
import { call, type Noun, rows } from '../command.ts'
import { type NameWords, namedBy } from '../names.ts'
import type { Column } from '../table.ts'

type Program = ResponseOf<'programs.list'>['programs'][number]

const reach = ({ allowed_server_ids: servers, allowed_project_ids: projects }: Program): string =>
  [...servers, ...projects].join(' ') || 'all'

const COLUMNS: readonly Column<Program>[] = [
  { heading: 'ID', cell: ({ id }) => id },
  { heading: 'NAME', cell: ({ name }) => name, elastic: true },
  { heading: 'REACHES', cell: reach, minor: 2 },
  { heading: 'LAST USED', cell: ({ last_used_at }) => last_used_at ?? 'never', minor: 1 },
  { heading: 'LET IN', cell: ({ created_at }) => created_at, minor: 3 },
]

const WORDS: NameWords = {
  one: 'program',
  by: ['name'],
  listedBy: 'berth programs',
  none: 'No program was let in.',
}

/** `berth programs` */
export const programsNoun: Noun = {
  name: 'programs',
  summary: 'OAuth programs that may use the account',
  description:
    'Lists the programs, such as MCP hosts, that were let in by OAuth, and ends their access. Plain "berth programs" lists them.',
  names: [
    {
      placeholder: 'PROGRAM',
      words: WORDS,
      list: namedBy(
        'name',
        async (client, signal) => (await client.call('programs.list', { signal })).programs,
      ),
    },
  ],
  commands: [
    call('programs.list', {
      usage: 'list',
      description: 'list the programs, newest first',
      show: rows('programs', COLUMNS, 'No program was let in.\n'),
    }),
    call('programs.delete', {
      usage: 'delete <PROGRAM>',
      description: 'let a program in no more',
      request: async ([named], _, { idOf }) => ({ params: { programId: await idOf('PROGRAM', named) } }),
      show: ({ id }) => `${id} is let in no more.\n`,
    }),
  ],
}
