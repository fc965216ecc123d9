import { listenSecret } from '../../resources/webhooks/signature.ts'
import { reachLoopbackDirectly } from '../../runtime/process-environment.ts'
import { Client } from '../client.ts'
import { CommandError } from '../errors.ts'
import type { InstanceOptions } from '../find-instance.ts'
import { untilInterrupted } from '../interrupt.ts'
import { count, paint, printable, printJson, type Style, timeOfDay } from '../output.ts'
import { toPlainText } from '../plain-text.ts'
import type { OutputStream } from '../process-context.ts'
import { type CliSession, locateInstance } from '../session.ts'
import { type EventConnection, followEvents, type ListenEvent, type ListenedEvent } from './events.ts'
import { type ForwardResult, forward } from './forward.ts'

/** Options of `berth listen`. */
interface ListenOptions {
  /** URL to forward events to; undefined to show them only. */
  target: string | undefined
  events: ReadonlySet<string>
  account?: string | undefined
  json?: boolean | undefined
}

/** Connects to the instance and derives its signing secret. */
export async function openConnection(
  session: CliSession,
  options: InstanceOptions,
): Promise<EventConnection> {
  const instance = await locateInstance(session.context, options, 'control')
  reachLoopbackDirectly()
  return { client: new Client(instance), secret: listenSecret(instance.credential) }
}

/**
 * Shows and forwards every event of the running instance, in order, until Ctrl-C.
 *
 * @returns the exit code: 0 after Ctrl-C
 */
export function listenToEvents(
  session: CliSession,
  connected: InstanceOptions,
  options: ListenOptions,
): Promise<number> {
  return untilInterrupted(async (signal) => {
    const reporter = options.json ? jsonReporter(session, options) : textReporter(session, options)
    try {
      const connection = await openConnection(session, connected)
      await checkAccount(connection.client, options.account)
      const received = followEvents(connection, {
        connect: async () => openConnection(session, connected),
        accountId: options.account,
        signal,
      })
      for await (const one of received) {
        const wanted = one.type !== 'event' || options.events.has(one.event.event)
        if (wanted) await reporter.report(one, await forwardIfWanted(one, options.target, signal))
      }
    } catch (error) {
      if (!signal.aborted) throw error
    }
    await reporter.end()
    return 0
  })
}

async function forwardIfWanted(
  received: ListenEvent,
  url: string | undefined,
  signal: AbortSignal,
): Promise<ForwardResult | null> {
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

/** Prints received items. */
interface Reporter {
  report(received: ListenEvent, forwarded: ForwardResult | null): Promise<void>
  end(): Promise<void>
}

function jsonReporter(session: CliSession, { target }: ListenOptions): Reporter {
  return {
    report(received, forwarded) {
      if (received.type === 'event') {
        const { type, event } = received
        return printJson(session.context.stdout, { type, ...event, forwarded })
      }
      if (received.type === 'lost') return printJson(session.context.stdout, received)
      const { client, secret } = received.connection
      const forwarding = target === undefined ? {} : { forward_to: target, secret }
      return printJson(session.context.stdout, {
        type: received.type,
        base_url: client.baseUrl,
        ...forwarding,
      })
    },
    end: async () => {},
  }
}

function textReporter(session: CliSession, { target }: ListenOptions): Reporter {
  const view = new ListenView(session.context.stdout)
  let [secret, isReady] = ['', false]
  const reportNewSecret = async (connection: EventConnection): Promise<void> => {
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
          return reportNewSecret(received.connection)
        case 'anew':
          await view.notice('berth was reset, or an earlier state restored: its events begin anew.', 'cyan')
          return reportNewSecret(received.connection)
      }
    },
    end: async () => {
      if (isReady) await view.summary(target !== undefined)
    },
  }
}

/** Width of the longest event's name. */
const EVENT_WIDTH = 'project.secrets_required'.length

/** Characters of a receiver's response to show. */
const SHOWN_RESPONSE = 200

/** Indentation of lines that belong to the line above. */
const INDENT = ' '.repeat('00:00:00  '.length)

/** Shows received events to a person, one per line. */
class ListenView {
  readonly #out: OutputStream
  #events = 0
  #failed = 0

  constructor(out: OutputStream) {
    this.#out = out
  }

  /** Shows the instance, and the target of the events. */
  async intro(baseUrl: string, target: string | undefined, secret: string): Promise<void> {
    const end = paint(this.#out, 'dim', 'Ctrl-C ends this.')
    if (target === undefined) {
      const hint = paint(this.#out, 'dim', 'Nothing is forwarded without --forward-to URL.')
      return this.#out.write(`Listening to ${printable(baseUrl)}. ${hint} ${end}\n\n`)
    }
    await this.#out.write(
      [
        `Forwarding the events of ${printable(baseUrl)} to ${printable(target)}`,
        `Signing secret: ${paint(this.#out, 'bold', secret)}`,
        paint(this.#out, 'dim', 'It stays the same for this instance: give it to the receiver once. ') + end,
        '',
        '',
      ].join('\n'),
    )
  }

  /** Shows an event and the result of forwarding it. */
  async event({ id, event, data }: ListenedEvent, forwarded: ForwardResult | null): Promise<void> {
    this.#events += 1
    const dim = (text: string): string => paint(this.#out, 'dim', text)
    const ids = Object.entries(data).flatMap(([name, value]) =>
      name.endsWith('_id') && typeof value === 'string' ? [printable(value)] : [],
    )
    const outcome = forwarded === null ? '' : `${this.#outcome(forwarded)}  `
    const line = `${dim(timeOfDay())}  ${event.padEnd(EVENT_WIDTH)}  ${outcome}${dim([id, ...ids].join('  '))}\n`
    await this.#out.write(line + (forwarded === null ? '' : this.#failureText(forwarded)))
  }

  /** Shows a change of the connection or of the instance's state. */
  async notice(text: string, style: Style): Promise<void> {
    await this.#out.write(
      `${paint(this.#out, 'dim', timeOfDay())}  ${paint(this.#out, style, toPlainText(text))}\n`,
    )
  }

  /** Shows the number of events. */
  async summary(wasForwarded: boolean): Promise<void> {
    const failed = this.#failed > 0 ? `, ${this.#failed} of which the receiver did not take` : ''
    const what = wasForwarded ? 'forwarded' : 'seen'
    await this.#out.write(paint(this.#out, 'dim', `${count(this.#events, 'event')} ${what}${failed}.\n`))
  }

  #outcome({ status, ms, error }: ForwardResult): string {
    const style = error === null ? 'green' : status === null || status >= 400 ? 'red' : 'yellow'
    return `${paint(this.#out, style, String(status ?? '---'))}  ${`${Math.round(ms)} ms`.padStart(8)}`
  }

  /** Returns the error, and the beginning of the receiver's response. */
  #failureText({ error, response }: ForwardResult): string {
    if (error === null) return ''
    this.#failed += 1
    const excerpt = toPlainText(response).trim().replace(/\s+/g, ' ').slice(0, SHOWN_RESPONSE)
    const lines = [
      paint(this.#out, 'red', printable(error)),
      ...(excerpt === '' ? [] : [paint(this.#out, 'dim', excerpt)]),
    ]
    return lines.map((line) => `${INDENT}${line}\n`).join('')
  }
}
