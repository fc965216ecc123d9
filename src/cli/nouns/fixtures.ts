import { resolve } from 'node:path'
import type { ResponseOf } from '../../route-client/client.ts'
import { action, call, type Noun, rows } from '../command.ts'
import type { Column } from '../table.ts'

type Fixture = ResponseOf<'control.fixtures.list'>['fixtures'][number]

const COLUMNS: readonly Column<Fixture>[] = [
  { heading: 'KIND', cell: ({ kind }) => kind },
  { heading: 'NAME', cell: ({ name }) => name },
  { heading: 'ID', cell: ({ id }) => id },
  { heading: 'KEY, URL', cell: ({ api_key, url }) => api_key ?? url ?? '' },
]

/** `berth fixtures` */
export const fixturesNoun: Noun = {
  name: 'fixtures',
  summary: 'what files declare that is there at the start',
  description:
    'Shows what fixtures files have made, and checks such files. Plain "berth fixtures" lists what is there.',
  help: `
Examples:
  berth serve --fixtures fixtures.yaml         start with what the file declares
  berth fixtures                               what it has made: ids, keys, URLs
  berth fixtures check fixtures.yaml           find mistakes without a start
  berth fixtures schema > fixtures.schema.json for completion in an editor
`,
  commands: [
    call('control.fixtures.list', {
      usage: 'list',
      description: 'list what the files of the instance have made',
      show: rows('fixtures', COLUMNS, 'No fixtures. Declare some with "berth serve --fixtures FILE".\n'),
    }),
    action({
      usage: 'check <FILE...>',
      description: 'find mistakes in fixtures files, which belong together; no instance has to run',
      access: 'none',
      json: null,
      async run({ session: { context }, args: [files] }) {
        const { readFixtures } = await import('../../testing/seed/read.ts')
        readFixtures(
          files.map((file) => resolve(context.cwd, file)),
          context.env,
        )
        await context.stdout.write(
          files.length === 1 ? 'The file is good.\n' : `The ${files.length} files are good.\n`,
        )
      },
    }),
    action({
      usage: 'schema',
      operations: ['control.fixtures.schema'],
      description: 'print the JSON Schema of fixtures files, for editors; no instance has to run',
      access: 'none',
      json: null,
      async run({ session: { context } }) {
        const { fixturesSchema } = await import('../../testing/seed/read.ts')
        await context.stdout.write(`${JSON.stringify(fixturesSchema(), null, 2)}\n`)
      },
    }),
  ],
}
