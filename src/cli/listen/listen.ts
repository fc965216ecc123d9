import { reachLoopbackDirectly } from '../../config/config.ts'
import type { EventName } from '../../resources/events/names.ts'
import { listenSecret } from '../../resources/webhooks/signature.ts'
import { Client } from '../client.ts'
import { CommandError } from '../errors.ts'
import { type ConnectionOptions, findInstance } from '../instance.ts'
import { untilInterrupted } from '../interrupt.ts'
import { printJson } from '../output.ts'
import type { Session } from '../session.ts'
import { type Connection, followEvents, type Told } from './events.ts'
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
 * Shows every event of the running instance as it comes and forwards it, in order, until Ctrl-C.
 *
 * @returns the exit code: 0 after Ctrl-C
 */
export function listenToEvents(
  session: Session,
  connected: ConnectionOptions,
  options: ListenOptions,
): Promise<number> {
  return untilInterrupted(async (signal) => {
    const teller = options.json ? jsonTeller(session, options) : personTeller(session, options)
    try {
      const connection = openConnection(session, connected)
      await checkAccount(connection.client, options.account)
      const told = followEvents(connection, {
        open: async () => openConnection(session, connected),
        accountId: options.account,
        signal,
      })
      for await (const one of told) {
        const wanted = one.type !== 'event' || options.events.has(one.event.event)
        if (wanted) await teller.tell(one, await forwarded(one, options.target, signal))
      }
    } catch (error) {
      if (!signal.aborted) throw error
    }
    await teller.end()
    return 0
  })
}

async function forwarded(
  told: Told,
  url: string | undefined,
  signal: AbortSignal,
): Promise<Forwarded | null> {
  if (told.type !== 'event' || url === undefined) return null
  return forward(told.event, { url, secret: told.connection.secret, signal })
}

async function checkAccount(client: Client, id: string | undefined): Promise<void> {
  if (id === undefined) return
  const { accounts } = await client.call('control.accounts.list')
  if (accounts.some((account) => account.id === id)) return
  const known = accounts.map((account) => account.id).join(', ')
  throw new CommandError(`There is no account ${JSON.stringify(id)}; the accounts are ${known}.`)
}

/** Whoever is told what comes. */
interface Teller {
  tell(told: Told, forwarded: Forwarded | null): Promise<void>
  end(): Promise<void>
}

function jsonTeller(session: Session, { target }: ListenOptions): Teller {
  return {
    tell(told, forwarded) {
      if (told.type === 'event') {
        const { type, event } = told
        return printJson(session.terminal.stdout, { type, ...event, forwarded })
      }
      if (told.type === 'lost') return printJson(session.terminal.stdout, told)
      const { client, secret } = told.connection
      const forwarding = target === undefined ? {} : { forward_to: target, secret }
      return printJson(session.terminal.stdout, { type: told.type, base_url: client.baseUrl, ...forwarding })
    },
    end: async () => {},
  }
}

function personTeller(session: Session, { target }: ListenOptions): Teller {
  const view = new ListenView(session.terminal.stdout)
  let [secret, isReady] = ['', false]
  const sayIfChanged = async (connection: Connection): Promise<void> => {
    if (connection.secret === secret || target === undefined) return
    secret = connection.secret
    await view.notice(`It is another instance: its signing secret is ${secret}`, 'yellow')
  }
  return {
    async tell(told, forwarded) {
      switch (told.type) {
        case 'ready':
          secret = told.connection.secret
          isReady = true
          return view.intro(told.connection.client.baseUrl, target, secret)
        case 'event':
          return view.event(told.event, forwarded)
        case 'lost':
          return view.notice('berth is gone. This goes on when it is back.', 'yellow')
        case 'back':
          await view.notice(`berth is back at ${told.connection.client.baseUrl}.`, 'green')
          return sayIfChanged(told.connection)
        case 'anew':
          await view.notice('berth was reset, or an earlier state restored: its events begin anew.', 'cyan')
          return sayIfChanged(told.connection)
      }
    },
    end: async () => {
      if (isReady) await view.summary(target !== undefined)
    },
  }
}
