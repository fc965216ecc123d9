import { machineNow } from '../../runtime/clock.ts'
import { count, paint, printable, type Style } from '../output.ts'
import { plain } from '../plain-text.ts'
import type { Sink } from '../terminal.ts'
import type { EmittedEvent } from './events.ts'
import type { Forwarded } from './forward.ts'

/** As wide as the longest name of an event. */
const EVENT_WIDTH = 'project.secrets_required'.length

/** Characters of a receiver's response that are shown. */
const SHOWN_RESPONSE = 200

/** Where what belongs to the line above begins. */
const INDENT = ' '.repeat('00:00:00  '.length)

/** Shows events to a person as they come, one line each. */
export class ListenView {
  readonly #sink: Sink
  #events = 0
  #failed = 0

  constructor(sink: Sink) {
    this.#sink = sink
  }

  /** Says what is listened to, and where it goes. */
  async intro(baseUrl: string, target: string | undefined, secret: string): Promise<void> {
    const end = paint(this.#sink, 'dim', 'Ctrl-C ends this.')
    if (target === undefined) {
      const hint = paint(this.#sink, 'dim', 'Nothing is forwarded without --forward-to URL.')
      return this.#sink.write(`Listening to ${printable(baseUrl)}. ${hint} ${end}\n\n`)
    }
    await this.#sink.write(
      [
        `Forwarding the events of ${printable(baseUrl)} to ${printable(target)}`,
        `Signing secret: ${paint(this.#sink, 'bold', secret)}`,
        paint(this.#sink, 'dim', 'It stays the same for this instance: give it to the receiver once. ') + end,
        '',
        '',
      ].join('\n'),
    )
  }

  /** Shows an event, with what came of forwarding it. */
  async event({ id, event, data }: EmittedEvent, forwarded: Forwarded | null): Promise<void> {
    this.#events += 1
    const dim = (text: string): string => paint(this.#sink, 'dim', text)
    const ids = Object.entries(data).flatMap(([name, value]) =>
      name.endsWith('_id') && typeof value === 'string' ? [printable(value)] : [],
    )
    const outcome = forwarded === null ? '' : `${this.#outcome(forwarded)}  `
    const line = `${dim(timeOfDay())}  ${event.padEnd(EVENT_WIDTH)}  ${outcome}${dim([id, ...ids].join('  '))}\n`
    await this.#sink.write(line + (forwarded === null ? '' : this.#trouble(forwarded)))
  }

  /** Says that the instance is gone for now, that it is back, or that its events begin anew. */
  async notice(text: string, style: Style): Promise<void> {
    await this.#sink.write(
      `${paint(this.#sink, 'dim', timeOfDay())}  ${paint(this.#sink, style, plain(text))}\n`,
    )
  }

  /** Says at the end what there was. */
  async summary(wasForwarded: boolean): Promise<void> {
    const failed = this.#failed > 0 ? `, ${this.#failed} of which the receiver did not take` : ''
    const what = wasForwarded ? 'forwarded' : 'seen'
    await this.#sink.write(paint(this.#sink, 'dim', `${count(this.#events, 'event')} ${what}${failed}.\n`))
  }

  #outcome({ status, ms, error }: Forwarded): string {
    const style = error === null ? 'green' : status === null || status >= 400 ? 'red' : 'yellow'
    return `${paint(this.#sink, style, String(status ?? '---'))}  ${`${Math.round(ms)} ms`.padStart(8)}`
  }

  /** What a failure is about, and what the receiver said. */
  #trouble({ error, answer }: Forwarded): string {
    if (error === null) return ''
    this.#failed += 1
    const said = plain(answer).trim().replace(/\s+/g, ' ').slice(0, SHOWN_RESPONSE)
    const lines = [
      paint(this.#sink, 'red', printable(error)),
      ...(said === '' ? [] : [paint(this.#sink, 'dim', said)]),
    ]
    return lines.map((line) => `${INDENT}${line}\n`).join('')
  }
}

/** By this machine's clock and zone: the instance's clock may be frozen. */
const timeOfDay = (): string => new Date(machineNow()).toTimeString().slice(0, 8)
