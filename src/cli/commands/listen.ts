import type { Command } from 'commander'
import type { ConnectionOptions } from '../instance.ts'
import { type Session, withControl } from '../session.ts'

interface Options extends ConnectionOptions {
  forwardTo?: string
  events?: string
  account?: string
  printSecret?: boolean
  json?: boolean
}

const MORE = `
Each event is sent as a webhook would be: the same body, signed in the same way (Standard Webhooks), one after the
other. The secret stays the same for an instance. What the receiver does not take within 15 s, or answers with anything
but 2xx, is shown and passed over; a redirect is not followed. Where the instance is stopped and started or reset, it
goes on with what comes next. Webhooks are not needed for it, nor --allow-local-webhooks.

Examples:
  berth listen --forward-to localhost:3000/webhooks
  berth listen --forward-to 3000/webhooks --events 'task.*,project.ready'
  echo "WEBHOOK_SECRET=$(berth listen --print-secret)" >> .env
  berth listen --json | jq 'select(.type == "event").data'
`

/** Adds `listen`. */
export function registerListen(program: Command, session: Session): void {
  const command = program
    .command('listen')
    .summary('show events as they come, and forward them to a URL of this machine')
    .description(
      'Shows every event of the running instance, and forwards it, signed, to a URL of this machine.',
    )
    .option('--forward-to <URL>', 'where each event is sent to, such as localhost:3000/webhooks')
    .option('--events <EVENTS>', "these only: names with commas between them, 'task.*' for a group")
    .option('--account <ACCOUNT>', 'those of one account only')
    .option('--print-secret', 'print the signing secret alone, and end')
    .option('--json', 'one line of JSON for each event, for programs')
    .addHelpText('after', MORE)
  withControl(command).action(async (options: Options) => {
    const [{ listen, openConnection }, { readTarget }, { readEvents }] = await Promise.all([
      import('../listen/listen.ts'),
      import('../listen/target.ts'),
      import('../listen/wanted.ts'),
    ])
    if (options.printSecret)
      return session.terminal.stdout.write(`${openConnection(session, options).secret}\n`)
    const target = options.forwardTo === undefined ? undefined : readTarget(options.forwardTo)
    const events = readEvents(options.events)
    const { account, json } = options
    session.exitCode = await listen(session, options, { target, events, account, json })
  })
}
