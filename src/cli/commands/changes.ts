import type { AccountChangeMessage } from '../../resources/changes/model.ts'
import { ACCOUNT_CHANGE_TYPES, INSTANCE_CHANGE_TYPES } from '../../resources/changes/types.ts'
import type { ControlChangeMessage } from '../../testing/testing.ts'
import { action, jsonLines } from '../command.ts'
import { CommandError } from '../errors.ts'
import { untilInterrupted } from '../interrupt.ts'
import { flag, textOption } from '../options.ts'
import { paint, printable, shorten } from '../output.ts'
import type { OutputStream } from '../process-context.ts'
import { connectionReporter, followStream } from '../reconnect.ts'
import { connect as connectTo } from '../session.ts'

/** Most characters of an object on a line for people; a terminal's line has as many as fit. @bound reader */
const MOST_SHOWN = 300

/** The types of objects that the API sends. */
const API_TYPES: readonly string[] = ACCOUNT_CHANGE_TYPES

/** Those that the control API sends. */
const CONTROL_TYPES: readonly string[] = [...INSTANCE_CHANGE_TYPES, 'account']

type Message = AccountChangeMessage | ControlChangeMessage

/** `berth changes` */
export const changes = action({
  usage: 'changes [TYPE...]',
  operations: ['changes.stream', 'control.changes.stream'],
  summary: 'all that changes, as it changes',
  description:
    'Prints every object that the key reaches when it is added, has changed or was removed, until Ctrl-C, also across restarts and resets of the instance. What was before is not printed.',
  access: 'api',
  json: jsonLines('message'),
  arguments: {
    TYPE: {
      description: 'only objects of these types',
      choices: [...new Set([...API_TYPES, ...CONTROL_TYPES])],
    },
  },
  options: {
    all: flag('what happens in the instance, in all accounts: requests, events, deliveries, faults …'),
    adminToken: textOption('TOKEN', 'with --all: the admin token [BERTH_ADMIN_TOKEN]'),
  },
  help: `
A line "gap" says that changes may have been missed: load again what you keep. It comes when the
instance was restarted or reset, and when the reader was too slow.

Examples:
  berth changes task build                    tasks and builds alone
  berth changes --all request delivery        requests and what is delivered
  berth changes server --json | jq .value     for programs, one line each
`,
  async run({ session, args: [types], options, connect, reconnect, print }) {
    const isOfInstance = options.all === true
    const unknown = types.find((type) => !(isOfInstance ? CONTROL_TYPES : API_TYPES).includes(type))
    if (unknown !== undefined) {
      throw new CommandError(
        isOfInstance
          ? `With --all there is no "${unknown}"; leave --all out.`
          : `Only with --all is there "${unknown}": berth changes --all ${types.join(' ')}`,
        2,
      )
    }
    const again = isOfInstance ? () => connectTo(session, options, 'control') : reconnect
    const first = await (isOfInstance ? again() : connect())
    const wanted = new Set<string>(types)
    const report = connectionReporter(session.context.stderr)
    return untilInterrupted(async (signal) => {
      const followed = followStream({
        connection: first,
        async reconnect() {
          const client = await again()
          await client.call('control.health', { signal })
          return client
        },
        stream: (client): AsyncIterable<{ data: Message }> =>
          isOfInstance
            ? client.stream('control.changes.stream', { signal })
            : client.stream('changes.stream', { signal }),
        signal,
      })
      const show = (message: Message) => print(message, (_, { out }) => changeText(out, message))
      let hasBegun = false
      for await (const one of followed) {
        if (one.type === 'lost') {
          if (!hasBegun) throw new CommandError(one.reason)
          await report(one.reason)
        } else if (one.type === 'reconnected') {
          if (one.wasLost) await report(null)
          await show({ type: 'gap' })
        } else {
          hasBegun = true
          const { data } = one.item
          // What is about no object is of interest whatever is wanted.
          if (!('id' in data) || wanted.size === 0 || wanted.has(data.type)) await show(data)
        }
      }
      return 0
    })
  },
})

/** What the messages that are about no object mean. */
const SIGNALS: Readonly<Record<string, string>> = {
  ready: 'changes from now on are shown',
  gap: 'changes may have been missed here',
  reset: 'the state is replaced by a reset or a snapshot',
}

function changeText(out: OutputStream, message: Message): string {
  const type = paint(out, 'bold', message.type)
  if (!('id' in message)) return `${type}  ${paint(out, 'dim', SIGNALS[message.type] ?? '')}\n`
  const json = message.value === null ? 'gone' : JSON.stringify(message.value)
  const taken = `${message.type}  ${message.id}  `.length
  const room = out.columns === undefined ? MOST_SHOWN : Math.max(out.columns - taken, 'gone'.length)
  return `${type}  ${printable(message.id)}  ${shorten(printable(json), room)}\n`
}
