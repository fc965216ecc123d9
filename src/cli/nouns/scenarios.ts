import type { PartsOf, ResponseOf } from '../../client/client.ts'
import { CommandError } from '../errors.ts'
import { readInput } from '../local-file.ts'
import { count } from '../output.ts'
import type { ProcessContext } from '../process-context.ts'
import { action, call, type Noun, rows } from '../runner.ts'
import type { Column } from '../table.ts'

type ScenarioTexts = PartsOf<'control.scenarios.replace'>['body']['scenarios']
type Scenario = ResponseOf<'control.scenarios.list'>['scenarios'][number]

const COLUMNS: readonly Column<Scenario>[] = [
  { heading: 'NAME', cell: ({ name }) => name ?? '–' },
  {
    heading: 'MATCH',
    cell: ({ match }) => (typeof match === 'string' ? match : JSON.stringify(match)),
    elastic: true,
  },
  { heading: 'STEPS', cell: ({ steps }) => String(steps.length), right: true },
  { heading: 'SOURCE', cell: ({ source }) => source, minor: 1 },
]

/** `berth scenarios` */
export const scenarios: Noun = {
  name: 'scenarios',
  summary: 'what the scripted agent does about which goals',
  description:
    'Sets what the scripted agent does about which goals. Plain "berth scenarios" lists the scenarios in the order in which they are tried.',
  commands: [
    call('control.scenarios.list', {
      usage: 'list',
      description: 'list the scenarios that hold',
      show: rows('scenarios', COLUMNS, 'No scenarios. Set some with "berth scenarios set FILE".\n'),
    }),
    action({
      usage: 'set <FILE>',
      operations: ['control.scenarios.replace'],
      description: 'set scenarios in place of those set before; those of fixtures files stay',
      access: 'control',
      help: `
FILE is YAML or JSON: a list of scenarios, or an object with "scenarios", such as a fixtures file. - is standard input.

Example:
  echo '[{"match":"slow","steps":[{"hold":true}]}]' | berth scenarios set -
`,
      async run({ session, args: [file], connect, print }) {
        const scenarios = await readScenarios(file, session.context)
        const client = await connect()
        const response = await client.call('control.scenarios.replace', { body: { scenarios } })
        await print(response, ({ scenarios: all }) => {
          const set = all.filter(({ source }) => source === 'control').length
          return `Set ${count(set, 'scenario')}; ${all.length} hold now.\n`
        })
      },
    }),
    call('control.scenarios.clear', {
      usage: 'clear',
      description: 'remove those that were set; those of fixtures files stay',
      show: ({ scenarios: left }) => `Cleared; ${left.length} of files hold.\n`,
    }),
  ],
}

/** Reads the scenarios of a file without checking them. Berth checks them and reports the position of a mistake. */
async function readScenarios(file: string, context: ProcessContext): Promise<ScenarioTexts> {
  const bytes = await readInput(file, context)
  const { parse } = await import('yaml')
  let value: unknown
  try {
    // YAML includes JSON.
    value = parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes))
  } catch (error) {
    const [reason = ''] = (error instanceof Error ? error.message : String(error)).split('\n')
    throw new CommandError(`${file} is not written as YAML or JSON is: ${reason.replace(/[:.]$/, '')}.`)
  }
  const inside = (value as { scenarios?: ScenarioTexts } | null)?.scenarios
  if (Array.isArray(value)) return value
  if (inside !== undefined) return inside
  throw new CommandError(`${file} has no scenarios: give a list, or an object with "scenarios".`)
}
