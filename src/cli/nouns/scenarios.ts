import type { PartsOf, ResponseOf } from '../../route-client/client.ts'
import { action, call, type Noun, rows } from '../command.ts'
import { CommandError } from '../errors.ts'
import { readNamedFile } from '../local-file.ts'
import { flag, textOption } from '../options.ts'
import { count, printable } from '../output.ts'
import type { ProcessContext } from '../process-context.ts'
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
export const scenariosNoun: Noun = {
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
    action({
      usage: 'add <FILE>',
      operations: ['control.scenarios.add'],
      description: 'add the scenarios of a file before those that were set',
      access: 'control',
      help: `
FILE is as for "berth scenarios set". Other scenarios stay. "match" with "account_id" holds for one account.

Example:
  echo '[{"match":"slow","steps":[{"hold":true}]}]' | berth scenarios add -
`,
      async run({ session, args: [file], connect, print }) {
        const scenarios = await readScenarios(file, session.context)
        const client = await connect()
        const added: { id?: string }[] = []
        // The first one of the file is to be tried first.
        for (const body of scenarios.toReversed() as PartsOf<'control.scenarios.add'>['body'][])
          added.unshift((await client.call('control.scenarios.add', { body })).scenario)
        await print({ scenarios: added }, () => added.map(({ id }) => `${id}\n`).join(''))
      },
    }),
    call('control.scenarios.delete', {
      usage: 'delete <ID>',
      description: 'remove one that was added, by the id that its creation printed',
      request: ([scenarioId]) => ({ params: { scenarioId } }),
      show: ({ id }) => `Deleted ${id}.\n`,
    }),
    action({
      usage: 'preview <GOAL>',
      operations: ['control.scenarios.preview'],
      description: 'say which scenario would take a goal, and with which steps, without doing anything',
      access: 'control',
      options: { file: textOption('FILE', 'try the scenarios of a file in place of those that were set') },
      async run({ session, args: [goal], options: { file }, connect, print }) {
        const scenarios = file === undefined ? undefined : await readScenarios(file, session.context)
        const client = await connect()
        const body = { goal, ...(scenarios && { scenarios }) }
        await print(await client.call('control.scenarios.preview', { body }), previewText)
      },
    }),
    action({
      usage: 'record <TASK>',
      operations: ['control.tasks.scenario', 'control.scenarios.add'],
      description: 'make a scenario of what a task did: it is printed, or set before the others with --save',
      access: 'control',
      options: { save: flag('set it, before those that were set') },
      async run({ args: [taskId], options: { save }, connect, print, session }) {
        const client = await connect()
        const recorded = await client.call('control.tasks.scenario', { params: { taskId } })
        for (const note of recorded.notes) session.context.stderr.write(`${note}\n`)
        if (save) await client.call('control.scenarios.add', { body: recorded.scenario })
        const { stringify } = await import('yaml')
        await print(recorded, ({ scenario }) =>
          save
            ? `Set the scenario ${printable(scenario.name ?? '')}.\n`
            : stringify({ scenarios: [scenario] }),
        )
      },
    }),
    call('control.scenarios.clear', {
      usage: 'clear',
      description: 'remove those that were set; those of fixtures files stay',
      show: ({ scenarios: left }) => `Cleared; ${left.length} of files hold.\n`,
    }),
  ],
}

/** Returns a preview as sentences, and one line for each step. */
function previewText({
  by,
  scenario,
  values,
  steps,
  problem,
}: ResponseOf<'control.scenarios.preview'>): string {
  if (problem !== null) return `It would fail at once. ${printable(problem)}\n`
  if (by === 'nothing') return 'No scenario matches, and the goal has no directive: nothing would be done.\n'
  const who =
    scenario === null
      ? 'No scenario matches. The goal has its own directives:\n'
      : `${printable(scenario.name)} (${scenario.source === 'control' ? 'set by the control API' : scenario.source}) would take it:\n`
  const given = Object.entries(values).map(([name, value]) => `  ${name} = ${printable(value)}\n`)
  const lines = steps.map(({ kind, path, text, as }, index) => {
    const words = [path, text.trim() === '' ? '' : printable(text)].filter(Boolean).join(' <<< ')
    return `  ${index + 1}. ${kind} ${words}${as === undefined ? '' : ` → {{${as}}}`}\n`
  })
  return [who, ...given, ...lines].join('')
}

/** Reads the scenarios of a file without checking them. Berth checks them and reports the position of a mistake. */
async function readScenarios(file: string, context: ProcessContext): Promise<ScenarioTexts> {
  const bytes = await readNamedFile(file, context)
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
