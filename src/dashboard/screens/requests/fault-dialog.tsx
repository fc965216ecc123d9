import type { ComponentChildren } from 'preact'
import { useMemo, useState } from 'preact/hooks'
import type { PartsOf } from '../../../route-client/client.ts'
import { CopyButton } from '../../components/copy.tsx'
import { FormDialog } from '../../components/dialog.tsx'
import { CommandLines, shellQuoted } from '../../components/http.tsx'
import { useDashboard } from '../../dashboard.ts'
import type { WholeRequest } from '../../store/store.ts'
import { pathWithoutQuery } from './facts.tsx'

/** Which requests a fault is for. */
export type NewFaultMatch = FaultCreate['match']

const TIMES = [
  { label: 'once', times: 1 },
  { label: '3 times', times: 3 },
  { label: 'each time', times: undefined },
] as const

/** Properties of the question for a fault. */
interface FaultDialogProps {
  title: string
  match: NewFaultMatch
  /** What is offered; `EFFECTS` if it is missing. */
  effects?: readonly OfferedEffect[]
  /** The effect to begin with, by its place among those that are offered. */
  initial: number
  /** How the match is chosen. */
  children: ComponentChildren
  onClose: () => void
}

/** Asks how requests are to fail and how often, and sets that fault. */
export function FaultDialog({
  title,
  match,
  effects = EFFECTS,
  initial,
  children,
  onClose,
}: FaultDialogProps) {
  const { api, notices, store } = useDashboard()
  const [chosen, setChosen] = useState(initial)
  const [often, setOften] = useState(0)
  const effect = effects[chosen] ?? effects[0]
  const times = TIMES[often]?.times
  if (!effect) return null
  const body: FaultCreate = { match, effect: effect.effect, ...(times !== undefined && { times }) }
  const set = async (): Promise<void> => {
    const fault = await api.call('control.faults.add', { body })
    store.faults.add(fault)
    notices.done('The fault is set.', {
      label: 'Remove it',
      run: () =>
        void notices.attempt(async () => {
          await api.call('control.faults.delete', { params: { faultId: fault.id } })
          store.faults.remove(fault.id)
        }),
    })
  }
  return (
    <FormDialog
      title={title}
      action="Set the fault"
      onSubmit={set}
      isDisabled={match.deliveries !== undefined && !isForDeliveries(effect.effect)}
      onClose={onClose}
      commands={<FaultLines fault={body} />}
    >
      {children}
      <fieldset class="choice column">
        <legend>What happens to them</legend>
        {effects.map(
          ({ label, effect: one }, index) =>
            (match.deliveries === undefined || isForDeliveries(one)) && (
              <label key={label}>
                <input
                  type="radio"
                  name="effect"
                  checked={chosen === index}
                  onChange={() => setChosen(index)}
                />
                {label}
              </label>
            ),
        )}
      </fieldset>
      <fieldset class="choice">
        <legend>How often</legend>
        {TIMES.map(({ label }, index) => (
          <label key={label}>
            <input type="radio" name="times" checked={often === index} onChange={() => setOften(index)} />
            {label}
          </label>
        ))}
      </fieldset>
    </FormDialog>
  )
}

/** Shows a fault as JSON, and the lines that set it. */
const FaultLines = ({ fault }: { fault: FaultCreate }) => (
  <>
    <details class="command-lines">
      <summary>The fault as JSON</summary>
      <div class="line">
        <code>{JSON.stringify(fault, null, 2)}</code>
        <CopyButton text={JSON.stringify(fault, null, 2)} label="Copy the JSON" />
      </div>
    </details>
    <CommandLines berth={faultLine(fault)} method="POST" path="/_berth/faults" body={fault} />
  </>
)

/** Asks how requests like one are to fail, and sets that fault. */
export function MakeFault({ request, onClose }: { request: WholeRequest; onClose: () => void }) {
  const { store } = useDashboard()
  const { method, operation, account_id: accountId } = request
  const path = pathWithoutQuery(request)
  const [isExact, setExact] = useState(true)
  const [isOfAccount, setOfAccount] = useState(false)
  const match = {
    ...(isExact || operation === null ? { method, path } : { operation }),
    ...(isOfAccount && accountId !== null && { account_id: accountId }),
  } as NewFaultMatch
  const effects = useMemo(() => [...sameResponse(request), ...EFFECTS], [request])
  return (
    <FaultDialog
      title="Make a fault of it"
      match={match}
      effects={effects}
      initial={initialOf(request, effects)}
      onClose={onClose}
    >
      <fieldset class="choice column">
        <legend>Which requests</legend>
        <label>
          <input type="radio" name="match" checked={isExact} onChange={() => setExact(true)} />
          <span>
            <span class="method">{method}</span> <bdi>{path}</bdi>
          </span>
        </label>
        {operation !== null && (
          <label>
            <input type="radio" name="match" checked={!isExact} onChange={() => setExact(false)} />
            <span>
              all of <code>{operation}</code>
            </span>
          </label>
        )}
        {accountId !== null && (
          <label>
            <input
              type="checkbox"
              checked={isOfAccount}
              onChange={({ currentTarget }) => setOfAccount(currentTarget.checked)}
            />
            only of the account <bdi>{store.accounts.get(accountId)?.label || accountId}</bdi>
          </label>
        )}
      </fieldset>
    </FaultDialog>
  )
}

/** Returns the effect that gives the response of a request; none if the journal lacks a part of its body. */
function sameResponse(request: WholeRequest): OfferedEffect[] {
  const { status, response, response_type: type, response_headers: headers } = request
  const isWhole = response === null ? type === null : response.body !== null && !response.truncated
  if (!isWhole || status < 200) return []
  const retryAfter = headers['retry-after']
  const respond = {
    status,
    ...(type !== null && { content_type: type }),
    ...(retryAfter !== undefined && { headers: { 'retry-after': retryAfter } }),
    ...(response && {
      body: typeof response.body === 'string' ? response.body : JSON.stringify(response.body),
    }),
  }
  return [{ label: `The same response: ${status}`, effect: { respond } }]
}

/** Returns the place of the effect that is the nearest to the outcome of a request. */
function initialOf({ status, aborted }: WholeRequest, effects: readonly OfferedEffect[]): number {
  const place = (isNear: (effect: OfferedEffect['effect']) => boolean): number =>
    effects.findIndex(({ effect }) => isNear(effect))
  const withStatus = (wanted: number): number =>
    place(
      (effect) =>
        ('respond' in effect && effect.respond.status === wanted) ||
        ('error' in effect && effect.error.status === wanted),
    )
  if (aborted) return place((effect) => 'delay_ms' in effect)
  const same = status < 400 ? -1 : withStatus(status)
  return same < 0 ? withStatus(500) : same
}

/** A fault to be set. */
export type FaultCreate = PartsOf<'control.faults.add'>['body']

/** What a fault does to a request. */
export type NewFaultEffect = FaultCreate['effect']

/** The page of proxies such as nginx for a server behind them that does not respond. */
const GATEWAY_PAGE =
  '<html><head><title>502 Bad Gateway</title></head><body><h1>502 Bad Gateway</h1></body></html>'

/** An effect as dialogs offer it. */
interface OfferedEffect {
  readonly label: string
  readonly effect: NewFaultEffect
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
  { label: 'Lost response: all is done, none arrives', effect: { lose_response: true } },
  { label: 'No response: nothing is done', effect: { disconnect: true } },
  { label: 'Compute fails', effect: { backend: 'fail' } },
]

/** Reports whether a delivery to a webhook can meet an effect, as a request to the API can. */
const isForDeliveries = (effect: NewFaultEffect): boolean => !('truncate' in effect || 'backend' in effect)

/** Describes an effect in words: `429 too_many_requests`, `5000 ms later`. */
export function effectWords(effect: NewFaultEffect): string {
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

function effectFlags(effect: NewFaultEffect): string[] {
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
  value === undefined ? [] : [`--${name}`, shellQuoted(String(value))]
