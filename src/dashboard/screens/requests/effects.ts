import type { PartsOf } from '../../../route-client/client.ts'
import { quoted } from '../../components/command-lines.tsx'

/** A fault to be set. */
export type FaultCreate = PartsOf<'control.faults.add'>['body']

/** What a fault does to a request. */
export type FaultEffect = FaultCreate['effect']

/** The page that proxies such as nginx give if what is behind them does not respond. */
const GATEWAY_PAGE =
  '<html><head><title>502 Bad Gateway</title></head><body><h1>502 Bad Gateway</h1></body></html>'

/** An effect as dialogs offer it. */
export interface OfferedEffect {
  readonly label: string
  readonly effect: FaultEffect
}

/** What a fault may do. */
export const EFFECTS: readonly OfferedEffect[] = [
  { label: '429 too many requests', effect: { error: { status: 429, retry_after: 30 } } },
  { label: '500 internal error', effect: { error: { status: 500 } } },
  { label: '502 bad gateway', effect: { error: { status: 502 } } },
  {
    label: '502 as HTML, as a proxy gives it',
    effect: { respond: { status: 502, content_type: 'text/html', body: GATEWAY_PAGE } },
  },
  { label: '503 unavailable', effect: { error: { status: 503 } } },
  { label: 'Slow: 5 s later', effect: { delay_ms: 5_000 } },
  { label: 'Cut off in the body', effect: { truncate: { bytes: 10 } } },
  { label: 'Lost response: all is done, none comes', effect: { lose_response: true } },
  { label: 'No response: nothing is done', effect: { disconnect: true } },
  { label: 'Compute fails', effect: { backend: 'fail' } },
]

/** Reports whether a delivery to a webhook can meet an effect, as a request to the API can. */
export const isForDeliveries = (effect: FaultEffect): boolean =>
  !('truncate' in effect || 'backend' in effect)

/** Returns what an effect is, in words: `429 too_many_requests`, `5000 ms later`. */
export function effectText(effect: FaultEffect): string {
  if ('error' in effect) return `${effect.error.status} ${effect.error.code ?? ''}`.trim()
  if ('delay_ms' in effect) return `${effect.delay_ms} ms later`
  if ('respond' in effect) return `${effect.respond.status} ${effect.respond.content_type ?? ''}`.trim()
  if ('truncate' in effect) return `Cut off after ${effect.truncate.bytes} bytes`
  if ('lose_response' in effect) return 'Lost response'
  return 'disconnect' in effect ? 'No response' : 'Compute fails'
}

/** Returns the line for a terminal that sets a fault. */
export function faultLine({ match, effect, times, after, probability, seed }: FaultCreate): string {
  const { operation, method, path, account_id: account, client, deliveries } = match
  return [
    'berth faults add',
    ...flag('operation', operation),
    ...flag('method', method),
    ...flag('path', path),
    ...deliveryFlags(deliveries),
    ...flag('account', account),
    ...flag('client', client),
    ...effectFlags(effect),
    ...flag('times', times),
    ...flag('after', after),
    ...flag('probability', probability),
    ...flag('seed', seed),
  ].join(' ')
}

function deliveryFlags(deliveries: FaultCreate['match']['deliveries']): string[] {
  if (deliveries === undefined) return []
  const { webhook_id: webhook, event } = deliveries
  if (webhook === undefined && event === undefined) return ['--deliveries']
  return [...flag('webhook', webhook), ...flag('event', event)]
}

function effectFlags(effect: FaultEffect): string[] {
  if ('error' in effect) {
    const { status, code, message, retry_after: retryAfter, headers } = effect.error
    return [
      ...flag('error', status),
      ...flag('code', code),
      ...flag('message', message),
      ...flag('retry-after', retryAfter),
      ...headerFlags(headers),
    ]
  }
  if ('respond' in effect) {
    const { status, content_type: type, headers, body } = effect.respond
    return [
      ...flag('respond', status),
      ...flag('content-type', type),
      ...headerFlags(headers),
      ...flag('body', body),
    ]
  }
  if ('delay_ms' in effect) return flag('delay', `${effect.delay_ms}ms`)
  if ('truncate' in effect) return flag('truncate', effect.truncate.bytes)
  if ('lose_response' in effect) return ['--lose-response']
  return 'disconnect' in effect ? ['--disconnect'] : ['--backend-fail']
}

const headerFlags = (headers: Readonly<Record<string, string | undefined>> = {}): string[] =>
  Object.entries(headers).flatMap(([name, value = '']) => flag('header', `${name}: ${value}`))

const flag = (name: string, value: string | number | undefined): string[] =>
  value === undefined ? [] : [`--${name}`, quoted(String(value))]
