import { EMITTED_NAMES } from '../../resources/events/names.ts'
import type { ResponseOf } from '../../route-client/client.ts'
import { action, jsonLines, type Noun } from '../command.ts'
import { untilInterrupted } from '../interrupt.ts'
import { choiceOption, flag, textOption, wholeNumber } from '../options.ts'
import { paint, printable } from '../output.ts'
import type { OutputStream } from '../process-context.ts'

type EmittedEvent = ResponseOf<'control.events.list'>['events'][number]

/** Default number of events to list. */
const LISTED = 100

/** `berth events` */
export const eventsNoun: Noun = {
  name: 'events',
  summary: 'what was emitted, with or without a webhook',
  description:
    'Prints the events that an instance emitted, the latest last, whether a webhook takes them or not. Plain "berth events" lists them; "berth trigger" emits one.',
  commands: [
    action({
      usage: 'list',
      operations: ['control.events.list'],
      description: 'list events, the latest last',
      access: 'control',
      json: jsonLines('event'),
      options: {
        follow: flag('continue with new ones, until Ctrl-C', { short: 'f' }),
        event: choiceOption('EVENT', 'those of one name', EMITTED_NAMES),
        account: textOption('ACCOUNT', 'those of one account'),
        after: textOption('ID', 'only what came after the event of this id'),
        limit: wholeNumber('N', `how many at most, the latest (default ${LISTED})`, { least: 1 }),
      },
      help: `
Examples:
  berth events --event task.completed --limit 1     the latest one
  berth events -f --json | jq .data                 new ones, for programs
`,
      async run({ options, connect, idOf, print }) {
        const client = await connect()
        const { follow, event, after, limit } = options
        const show = (one: EmittedEvent): Promise<number> => print(one, (_, { out }) => eventText(out, one))
        const query = { event, account_id: await idOf('ACCOUNT', options.account), after, limit }
        if (follow) {
          return untilInterrupted(async (signal) => {
            for await (const { data } of client.stream('control.events.list', { query, signal }))
              await show(data)
            return 0
          })
        }
        const listed = await client.call('control.events.list', {
          query: { ...query, limit: limit ?? LISTED },
        })
        for (const one of listed.events.toReversed()) await show(one)
        return 0
      },
    }),
  ],
}

function eventText(out: OutputStream, { id, event, data, created_at }: EmittedEvent): string {
  const [time, name] = [paint(out, 'dim', created_at), paint(out, 'bold', event)]
  return `${time}  ${id}  ${name}  ${printable(JSON.stringify(data))}\n`
}
