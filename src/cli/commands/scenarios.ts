import { readFile } from 'node:fs/promises'
import { resolve } from 'node:path'
import type { Command } from 'commander'
import type { Scenarios } from '../../testing/api/scenarios.ts'
import { CommandError } from '../errors.ts'
import { count } from '../format.ts'
import type { ConnectionOptions } from '../instance.ts'
import { type Column, table } from '../output.ts'
import { connectControl, printJson, type Session, withControl, withJson } from '../session.ts'

interface Options extends ConnectionOptions {
  json?: boolean
}

type Scenario = Scenarios['scenarios'][number]

const COLUMNS: Column<Scenario>[] = [
  { heading: 'NAME', cell: ({ name }) => name ?? '–' },
  { heading: 'MATCH', cell: ({ match }) => (typeof match === 'string' ? match : JSON.stringify(match)) },
  { heading: 'STEPS', cell: ({ steps }) => String(steps.length), right: true },
  { heading: 'SOURCE', cell: ({ source }) => source },
]

const MORE_SET = `
FILE is YAML or JSON: a list of scenarios, or an object with "scenarios", such as a fixtures file. - is standard input.

Example:
  echo '[{"match":"slow","steps":[{"hold":true}]}]' | berth scenarios set -
`

/** Adds `scenarios` and what can be done with them. */
export function registerScenarios(program: Command, session: Session): void {
  const { stdout } = session.terminal
  const scenarios = program
    .command('scenarios')
    .helpCommand(false)
    .summary('what the scripted agent does about which goals')
    .description(
      'Sets what the scripted agent does about which goals. Plain "berth scenarios" lists the scenarios in the order in which they are tried.',
    )
  const add = (usage: string, description: string) =>
    withControl(withJson(scenarios.command(usage).description(description)))

  add('list', 'list the scenarios that hold').action(async (options: Options) => {
    const client = await connectControl(session, options)
    const answer = await client.request<Scenarios>('GET', '/_berth/scenarios')
    if (options.json) return printJson(session, answer)
    if (answer.scenarios.length === 0)
      return stdout.write('No scenarios. Set some with "berth scenarios set FILE".\n')
    await stdout.write(table(stdout, COLUMNS, answer.scenarios))
  })

  add('set <FILE>', 'set scenarios in place of those set before; those of fixtures files stay')
    .addHelpText('after', MORE_SET)
    .action(async (file: string, options: Options) => {
      const given = await readScenarios(file, session)
      const client = await connectControl(session, options)
      const answer = await client.request<Scenarios>('PUT', '/_berth/scenarios', {
        body: { scenarios: given },
      })
      if (options.json) return printJson(session, answer)
      const set = answer.scenarios.filter(({ source }) => source === 'control').length
      await stdout.write(`Set ${count(set, 'scenario')}; ${answer.scenarios.length} hold now.\n`)
    })

  add('clear', 'remove those that were set; those of fixtures files stay').action(
    async (options: Options) => {
      const client = await connectControl(session, options)
      const answer = await client.request<Scenarios>('DELETE', '/_berth/scenarios')
      if (options.json) return printJson(session, answer)
      await stdout.write(`Cleared; ${answer.scenarios.length} of files hold.\n`)
    },
  )
}

/** What a file says, as it stands there: berth checks it, and names the place of a mistake. */
async function readScenarios(file: string, { terminal }: Session): Promise<unknown> {
  const bytes =
    file === '-'
      ? await terminal.stdin.bytes()
      : await readFile(resolve(terminal.cwd, file)).catch((error: Error) => {
          throw new CommandError(`${file} cannot be read: ${error.message}.`)
        })
  const { parse } = await import('yaml')
  let value: unknown
  try {
    // JSON is YAML too.
    value = parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes))
  } catch (error) {
    const [reason = ''] = (error instanceof Error ? error.message : String(error)).split('\n')
    throw new CommandError(`${file} is not written as YAML or JSON is: ${reason.replace(/[:.]$/, '')}.`)
  }
  const inside = (value as { scenarios?: unknown } | null)?.scenarios
  if (Array.isArray(value)) return value
  if (inside !== undefined) return inside
  throw new CommandError(`${file} has no scenarios: give a list, or an object with "scenarios".`)
}
