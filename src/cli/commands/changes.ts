import type { AccountChangeMessage } from '../../resources/changes/model.ts'
import { untilInterrupted } from '../interrupt.ts'
import { paint, printable } from '../output.ts'
import type { OutputStream } from '../process-context.ts'
import { action, jsonLines } from '../runner.ts'

/** Most characters of an object on a line for people. */
const MOST_SHOWN = 300

/** The types of objects, which may be chosen. */
const TYPES = [
  'server',
  'project',
  'deployment',
  'task',
  'build',
  'terminal',
  'secret',
  'key',
  'webhook',
  'account',
] as const

/** `berth changes` */
export const changes = action({
  usage: 'changes [TYPE...]',
  summary: 'all that changes, as it changes',
  description:
    'Prints every object that the key reaches when it is added, has changed or was removed, until Ctrl-C. What was before is not printed.',
  access: 'api',
  json: jsonLines('message'),
  arguments: { TYPE: { description: 'only objects of these types', choices: TYPES } },
  help: `
Examples:
  berth changes task build                 tasks and builds alone
  berth changes server --json | jq .value  for programs, one line each
`,
  async run({ args: [types], connect, print }) {
    const client = await connect()
    const wanted = new Set<string>(types)
    return untilInterrupted(async (signal) => {
      for await (const { data } of client.stream('changes.stream', { signal })) {
        // A gap is of interest whatever is wanted.
        if (!('id' in data) || wanted.size === 0 || wanted.has(data.type))
          await print(data, (_, { out }) => changeText(out, data))
      }
      return 0
    })
  },
})

function changeText(out: OutputStream, message: AccountChangeMessage): string {
  const type = paint(out, 'bold', message.type)
  if (!('id' in message)) return `${type}\n`
  const text = message.value === null ? 'gone' : JSON.stringify(message.value)
  const shown = text.length > MOST_SHOWN ? `${text.slice(0, MOST_SHOWN)}…` : text
  return `${type}  ${message.id}  ${printable(shown)}\n`
}
