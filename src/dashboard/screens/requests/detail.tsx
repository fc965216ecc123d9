import { Fragment } from 'preact'
import { useMemo, useState } from 'preact/hooks'
import { ApiFailure } from '../../api/client.ts'
import { Button, Menu, type MenuItem } from '../../components/button.tsx'
import { CopyButton, Id, ServerLink } from '../../components/copy.tsx'
import { FormDialog } from '../../components/dialog.tsx'
import { curlLine, Headers, HttpStatus, tokenOf } from '../../components/http.tsx'
import { JsonView, LongText } from '../../components/json-view.tsx'
import { span, Time } from '../../components/time.tsx'
import { type Dashboard, useDashboard } from '../../dashboard.ts'
import type { JournalRequest, WholeRequest } from '../../store/store.ts'
import { useLive } from '../../store/use-live.ts'
import { EntryRow } from '../timeline/entry-row.tsx'
import type { TreeEntry } from '../timeline/tree.ts'
import { useTree } from '../timeline/use-tree.ts'
import { errorCodeOf, isRead, RequestReader, Who } from './facts.tsx'
import { effectWords, MakeFault, type NewFaultEffect } from './fault-dialog.tsx'

/** A request: its sender, both bodies, the faults that applied to it, what it caused, and the actions on it. */
export function Detail({ id }: { id: string }) {
  const { api, router } = useDashboard()
  // Only its end changes a request, such as that of a stream.
  const { value } = useLive<WholeRequest>(
    () => api.call('control.requests.get', { params: { requestId: id } }),
    'request',
    (change) => change.id === id || change.id === '*',
    [id],
  )
  const close = (): void => router.setQuery('request', '')
  const isGone = value instanceof Error
  const request = isGone || value?.id !== id ? null : value
  return (
    <aside class="detail" aria-label="The request">
      {request && <Known request={request} onClose={close} />}
      {isGone && (
        <>
          <div class="detail-head">
            <h2>{isMissing(value) ? 'Not in the journal' : 'The request could not be loaded'}</h2>
            <Button look="quiet" icon="close" label="Close the request" onClick={close} />
          </div>
          <p>
            {isMissing(value) ? (
              <>
                The journal keeps the last requests only, and has none with the id <code>{id}</code>.
              </>
            ) : (
              value.message
            )}
          </p>
        </>
      )}
    </aside>
  )
}

const isMissing = (error: Error): boolean => error instanceof ApiFailure && error.status === 404

function Known({ request, onClose }: { request: WholeRequest; onClose: () => void }) {
  const [asked, setAsked] = useState<'fault' | 'send' | null>(null)
  const dashboard = useDashboard()
  const { context, notices } = dashboard
  const { id, method, path, status, near_misses: misses } = request
  const copied = (label: string, text: string): MenuItem => ({
    label: `Copy as ${label}`,
    icon: 'copy',
    run: async () => {
      await navigator.clipboard.writeText(text)
      notices.done(`Copied as ${label}.`)
    },
  })
  const line = { method, path, ...(request.request !== null && { body: request.request.body }) }
  const copies = [
    copied('curl', curlLine(context.base_url, line)),
    copied('fetch', fetchCode(request)),
    copied('a test', testCode(request)),
  ]
  return (
    <>
      <div class="detail-head">
        <h2>
          <HttpStatus of={status} /> <span class="method">{method}</span> <bdi>{path}</bdi>
        </h2>
        <Menu label="Copy" items={copies} />
        <Button look="quiet" icon="close" label="Close the request" onClick={onClose} />
      </div>
      <div class="actions">
        {!context.is_report && (
          <>
            <Button
              icon="restart"
              onClick={() => (isRead(request) ? sendAgain(dashboard, request) : setAsked('send'))}
            >
              Send again
            </Button>
            <Button icon="controls" onClick={() => setAsked('fault')}>
              Make a fault of it
            </Button>
          </>
        )}
        <CopyButton text={curlLine(context.base_url, line)} label="Copy as curl" />
        <Id id={id} />
      </div>
      <Said request={request} />
      {misses.map(({ at, message }) => (
        <p class="notice near-miss" key={`${at} ${message}`}>
          <code>{at}</code> <bdi>{message}</bdi>
        </p>
      ))}
      <Facts request={request} />
      <Caused id={id} />
      <Headers title="Headers of the request" headers={request.request_headers} />
      <Body
        title="Request"
        part={request.request}
        none={hasSentBody(request) ? 'It was refused before its body was read.' : 'It had no body.'}
      />
      <Headers title="Headers of the response" headers={request.response_headers} />
      <Body
        title="Response"
        part={request.response}
        none={`It had no JSON${request.response_type === null ? '' : `, but ${request.response_type}`}.`}
      />
      {asked === 'fault' && <MakeFault request={request} onClose={() => setAsked(null)} />}
      {asked === 'send' && <SendAgain request={request} onClose={() => setAsked(null)} />}
    </>
  )
}

/** What the response to a failed request says, above everything that leads to it. */
function Said({ request }: { request: JournalRequest }) {
  const message = request.said?.message ?? null
  if (message === null) return null
  return (
    <p class="notice failure">
      <code>{errorCodeOf(request)}</code> <bdi>{message}</bdi>
    </p>
  )
}

function Facts({ request }: { request: JournalRequest }) {
  const { store } = useDashboard()
  const { operation, at, ms, client, aborted, api_key_id: keyId, faults } = request
  const serverId = new RequestReader().serverId(request, store.projects.list.value)
  return (
    <dl class="facts">
      <dt>Operation</dt>
      <dd>{operation === null ? 'none at this path' : <code>{operation}</code>}</dd>
      <dt>Time</dt>
      <dd>
        <Time at={at} />, took {span(ms)}
        {aborted && ', and the client had gone before the response'}
      </dd>
      <dt>From</dt>
      <dd>
        <Who request={request} />
        {client === 'dashboard' ? ', from this dashboard' : keyId?.startsWith('ses_') && ', from a browser'}
      </dd>
      {serverId !== null && (
        <>
          <dt>Server</dt>
          <dd>
            <ServerLink id={serverId} />
          </dd>
        </>
      )}
      {faults.map(({ fault_id: id, effect }) => (
        <Fragment key={id}>
          <dt>Fault</dt>
          <dd class="problem">
            {store.faults.open().get(id) ? (
              <a href={`/dashboard/controls/faults?fault=${id}`}>
                <code>{id}</code>
              </a>
            ) : (
              <>
                <code>{id}</code>, removed since,
              </>
            )}{' '}
            {effectOnRequest(effect)}
          </dd>
        </Fragment>
      ))}
    </dl>
  )
}

/** Reports whether a client sent a body with a request (RFC 9112, 6). */
function hasSentBody({ request_headers: headers }: JournalRequest): boolean {
  return 'transfer-encoding' in headers || Number(headers['content-length'] ?? 0) > 0
}

/** What a fault did to a request. */
function effectOnRequest(effect: NewFaultEffect): string {
  if ('error' in effect || 'respond' in effect) return 'gave this response. The API did nothing.'
  if ('delay_ms' in effect) return `held it up for ${span(effect.delay_ms)}.`
  if ('lose_response' in effect) return 'lost the response. All was done, but the client has none of it.'
  if ('truncate' in effect)
    return `cut the response off: the client has ${effect.truncate.bytes} bytes of its body.`
  if ('disconnect' in effect)
    return 'cut the connection. The API did nothing, and the client has no response.'
  return `applied to it: ${effectWords(effect)}.`
}

/** What a request caused: objects, events, their deliveries and the receivers' responses. */
function Caused({ id }: { id: string }) {
  const tree = useTree()
  const rows = useMemo(() => {
    const entry = tree.find(({ subject }) => subject.kind === 'request' && subject.value.id === id)
    return entry ? below(entry, 0) : []
  }, [tree, id])
  if (rows.length === 0) return null
  return (
    <section aria-label="What it caused">
      <h3>What it caused</h3>
      <ul class="caused">
        {rows.map(({ entry, level }) => (
          <li key={entry.key}>
            <EntryRow entry={entry} level={level} />
          </li>
        ))}
      </ul>
    </section>
  )
}

const below = ({ children }: TreeEntry, level: number): { entry: TreeEntry; level: number }[] =>
  children.flatMap((entry) => [{ entry, level }, ...below(entry, level + 1)])

/** A body, as JSON if it is. */
function Body({ title, part, none }: { title: string; part: WholeRequest['request']; none: string }) {
  const text =
    part === null ? '' : typeof part.body === 'string' ? part.body : JSON.stringify(part.body, null, 2)
  return (
    <section aria-label={`Body of the ${title.toLowerCase()}`}>
      <div class="body-head">
        <h3>{title}</h3>
        {part !== null && <CopyButton text={text} label={`Copy the body of the ${title.toLowerCase()}`} />}
      </div>
      {part === null ? (
        <p class="quiet">{none}</p>
      ) : part.body === null ? (
        <p class="quiet">It is not shown: it may hold secrets that cannot be found in it.</p>
      ) : typeof part.body === 'string' ? (
        <div class="json">
          <bdi>
            <LongText text={part.body} />
          </bdi>
        </div>
      ) : (
        <JsonView value={part.body} />
      )}
      {part?.truncated && (
        <p class="quiet">Longer than the 64 KiB that the journal keeps: the rest is not there.</p>
      )}
    </section>
  )
}

/** Sends a request again with the session of the browser, and opens the new one. */
async function sendAgain(
  { api, router, notices }: Dashboard,
  { method, path, request, response_type: type }: WholeRequest,
): Promise<void> {
  const { status, headers, body } = await api.request(
    { method, path, body: request?.body, form: undefined, bytes: undefined, signal: undefined },
    {
      ...(type?.startsWith('text/event-stream') && { accept: 'text/event-stream' }),
      // Faults skip the dashboard's own requests, but this one is sent in place of a client's.
      'x-berth-client': 'person',
    },
  )
  // A stream may go on for long. What it began ends with it.
  await body?.cancel()
  notices.done(`Sent again: ${status}.`)
  const id = headers.get('x-request-id')
  if (id !== null) router.setQuery('request', id)
}

/** Asks before a request is sent again that may change something. */
function SendAgain({ request, onClose }: { request: WholeRequest; onClose: () => void }) {
  const dashboard = useDashboard()
  const { context } = dashboard
  const { method, path, account_id: accountId } = request
  const hidesSecrets = JSON.stringify(request.request?.body ?? null).includes('***')
  return (
    <FormDialog
      title="Send it again?"
      action="Send"
      onSubmit={() => sendAgain(dashboard, request)}
      onClose={onClose}
    >
      <p>
        <span class="method">{method}</span> <bdi>{path}</bdi> is done once more
        {accountId !== context.account.id && (
          <>
            , as <bdi>{context.account.label || context.account.id}</bdi>: with your session, not with the key
            that it had
          </>
        )}
        .
      </p>
      {hidesSecrets && <p>Secrets in its body are masked in the journal, and are sent as ***.</p>}
    </FormDialog>
  )
}

/** Where the program that the code is copied into has its variables. */
const VARIABLES = ['process', 'env'].join('.')

/** Returns the call of `fetch` that sends a request. The key stays a variable. */
function fetchCode({ method, path, request }: WholeRequest): string {
  const body = request === null ? undefined : JSON.stringify(request.body, null, 2)
  const headers = [
    `authorization: \`Bearer \${${VARIABLES}.${tokenOf(path)}}\``,
    ...(body === undefined ? [] : ["'content-type': 'application/json'"]),
  ]
  const address = `\`\${${VARIABLES}.BERTH_BASE_URL}${path.replace(/[`\\$]/g, '\\$&')}\``
  return [
    `const response = await fetch(${address}, {`,
    `  method: '${method}',`,
    `  headers: { ${headers.join(', ')} },`,
    ...(body === undefined ? [] : [`  body: JSON.stringify(${body.replaceAll('\n', '\n  ')}),`]),
    '})',
  ].join('\n')
}

/** Returns a test, for bun:test or Vitest, that sends a request and expects the same response. */
function testCode(entry: WholeRequest): string {
  const { method, path, status, operation, response } = entry
  const name = `${operation ?? `${method} ${path}`} responds with ${status}`
  const expected = response === null ? null : matcherOf(response.body, status >= 400)
  return [
    "import { expect, test } from 'bun:test' // or 'vitest'",
    '',
    `test(${JSON.stringify(name)}, async () => {`,
    ...fetchCode(entry)
      .split('\n')
      .map((line) => `  ${line}`),
    `  expect(response.status).toBe(${status})`,
    ...(expected === null ? [] : [`  expect(await response.json()).toMatchObject(${expected})`]),
    '})',
    '',
  ].join('\n')
}

/**
 * Returns the expectation for a response: of a failure the code, else the type of each field, since ids and times are others
 * each time.
 */
function matcherOf(body: unknown, isFailure: boolean): string | null {
  if (typeof body !== 'object' || body === null || Array.isArray(body)) return null
  const fields = Object.entries(body).flatMap(([name, value]) => {
    const kind = isFailure && name === 'error' ? JSON.stringify(value) : typeMatcher(value)
    return kind === null ? [] : [`${JSON.stringify(name)}: ${kind}`]
  })
  return fields.length === 0 ? null : `{ ${fields.join(', ')} }`
}

function typeMatcher(value: unknown): string | null {
  switch (typeof value) {
    case 'string':
      return 'expect.any(String)'
    case 'number':
      return 'expect.any(Number)'
    case 'boolean':
      return String(value)
    default:
      return Array.isArray(value) ? 'expect.any(Array)' : null
  }
}
