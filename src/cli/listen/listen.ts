import { reachLoopbackDirectly } from '../../config/config.ts'
import type { EventName } from '../../resources/events/names.ts'
import { listenSecret } from '../../resources/webhooks/signature.ts'
import { Client } from '../client.ts'
import { CommandError } from '../errors.ts'
import { type ConnectionOptions, findInstance } from '../instance.ts'
import { untilInterrupted } from '../interrupt.ts'
import { printJson } from '../output.ts'
import type { Session } from '../session.ts'
import { type Connection, followEvents, type ListenEvent } from './events.ts'
import { type Forwarded, forward } from './forward.ts'
import { ListenView } from './view.ts'

/** What is listened to, and what for. */
export interface ListenOptions {
  /** Where the events go; undefined where they are only shown. */
  target: string | undefined
  events: ReadonlySet<EventName>
  account?: string | undefined
  json?: boolean | undefined
}

/** Finds the instance, and the secret that goes with it. */
export function openConnection(session: Session, options: ConnectionOptions): Connection {
  const instance = findInstance(options, session.terminal, 'control')
  reachLoopbackDirectly()
  return { client: new Client(instance), secret: listenSecret(instance.credential) }
}

/**
 * Shows and forwards every event of the running instance, in order, until Ctrl-C.
 *
 * @returns the exit code: 0 after Ctrl-C
 */
export function listenToEvents(
  session: Session,
  connected: ConnectionOptions,
  options: ListenOptions,
): Promise<number> {
  return untilInterrupted(async (signal) => {
    const reporter = options.json ? jsonReporter(session, options) : textReporter(session, options)
    try {
      const connection = openConnection(session, connected)
      await checkAccount(connection.client, options.account)
      const received = followEvents(connection, {
        open: async () => openConnection(session, connected),
        accountId: options.account,
        signal,
      })
      for await (const one of received) {
        const wanted = one.type !== 'event' || options.events.has(one.event.event)
        if (wanted) await reporter.report(one, await forwarded(one, options.target, signal))
      }
    } catch (error) {
      if (!signal.aborted) throw error
    }
    await reporter.end()
    return 0
  })
}

async function forwarded(
  received: ListenEvent,
  url: string | undefined,
  signal: AbortSignal,
): Promise<Forwarded | null> {
  if (received.type !== 'event' || url === undefined) return null
  return forward(received.event, { url, secret: received.connection.secret, signal })
}

async function checkAccount(client: Client, id: string | undefined): Promise<void> {
  if (id === undefined) return
  const { accounts } = await client.call('control.accounts.list')
  if (accounts.some((account) => account.id === id)) return
  const known = accounts.map((account) => account.id).join(', ')
  throw new CommandError(`There is no account ${JSON.stringify(id)}; the accounts are ${known}.`)
}

/** Prints what is received. */
interface Reporter {
  report(received: ListenEvent, forwarded: Forwarded | null): Promise<void>
  end(): Promise<void>
}

function jsonReporter(session: Session, { target }: ListenOptions): Reporter {
  return {
    report(received, forwarded) {
      if (received.type === 'event') {
        const { type, event } = received
        return printJson(session.terminal.stdout, { type, ...event, forwarded })
      }
      if (received.type === 'lost') return printJson(session.terminal.stdout, received)
      const { client, secret } = received.connection
      const forwarding = target === undefined ? {} : { forward_to: target, secret }
      return printJson(session.terminal.stdout, {
        type: received.type,
        base_url: client.baseUrl,
        ...forwarding,
      })
    },
    end: async () => {},
  }
}

function textReporter(session: Session, { target }: ListenOptions): Reporter {
  const view = new ListenView(session.terminal.stdout)
  let [secret, isReady] = ['', false]
  const sayIfChanged = async (connection: Connection): Promise<void> => {
    if (connection.secret === secret || target === undefined) return
    secret = connection.secret
    await view.notice(`It is another instance: its signing secret is ${secret}`, 'yellow')
  }
  return {
    async report(received, forwarded) {
      switch (received.type) {
        case 'ready':
          secret = received.connection.secret
          isReady = true
          return view.intro(received.connection.client.baseUrl, target, secret)
        case 'event':
          return view.event(received.event, forwarded)
        case 'lost':
          return view.notice('berth is gone. This goes on when it is back.', 'yellow')
        case 'back':
          await view.notice(`berth is back at ${received.connection.client.baseUrl}.`, 'green')
          return sayIfChanged(received.connection)
        case 'anew':
          await view.notice('berth was reset, or an earlier state restored: its events begin anew.', 'cyan')
          return sayIfChanged(received.connection)
      }
    },
    end: async () => {
      if (isReady) await view.summary(target !== undefined)
    },
  }
}
