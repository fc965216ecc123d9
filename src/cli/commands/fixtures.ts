import { resolve } from 'node:path'
import type { Command } from 'commander'
import type { ListedFixture } from '../../testing/seed/listing.ts'
import type { ConnectionOptions } from '../instance.ts'
import { type Column, table } from '../output.ts'
import { connectControl, printJson, type Session, withControl, withJson } from '../session.ts'

const EXAMPLES = `
Examples:
  berth serve --fixtures fixtures.yaml         start with what the file declares
  berth fixtures                               what it has made: ids, keys, URLs
  berth fixtures check fixtures.yaml           find mistakes without a start
  berth fixtures schema > fixtures.schema.json for completion in an editor
`

interface Options extends ConnectionOptions {
  json?: boolean
}

const COLUMNS: Column<ListedFixture>[] = [
  { heading: 'KIND', cell: ({ kind }) => kind },
  { heading: 'NAME', cell: ({ name }) => name },
  { heading: 'ID', cell: ({ id }) => id },
  { heading: 'KEY, URL', cell: ({ api_key, url }) => api_key ?? url ?? '' },
]

/** Adds `fixtures` and what can be done with them. */
export function registerFixtures(program: Command, session: Session): void {
  const { stdout, cwd, env } = session.terminal
  const fixtures = program
    .command('fixtures')
    .helpCommand(false)
    .summary('what files declare that is there at the start')
    .description(
      'Shows what fixtures files have made, and checks such files. Plain "berth fixtures" lists what is there.',
    )
    .addHelpText('after', EXAMPLES)

  withControl(
    withJson(fixtures.command('list').description('list what the files of the instance have made')),
  ).action(async (options: Options) => {
    const client = await connectControl(session, options)
    const answer = await client.request<{ fixtures: ListedFixture[] }>('GET', '/_berth/fixtures')
    if (options.json) return printJson(session, answer)
    if (answer.fixtures.length === 0)
      return stdout.write('No fixtures. Declare some with "berth serve --fixtures FILE".\n')
    await stdout.write(table(stdout, COLUMNS, answer.fixtures))
  })

  fixtures
    .command('check <FILE...>')
    .description('find mistakes in fixtures files, which belong together; no instance has to run')
    .action(async (files: string[]) => {
      const { readFixtures } = await import('../../testing/seed/fixtures.ts')
      readFixtures(
        files.map((file) => resolve(cwd, file)),
        env,
      )
      await stdout.write(files.length === 1 ? 'The file is good.\n' : `The ${files.length} files are good.\n`)
    })

  fixtures
    .command('schema')
    .description('print the JSON Schema of fixtures files, for editors; no instance has to run')
    .action(async () => {
      const { fixturesSchema } = await import('../../testing/seed/schema.ts')
      await stdout.write(`${JSON.stringify(fixturesSchema(), null, 2)}\n`)
    })
}
