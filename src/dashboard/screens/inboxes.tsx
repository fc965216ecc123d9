import { useEffect, useState } from 'preact/hooks'
import type { ResponseOf } from '../../route-client/client.ts'
import { messageOf } from '../../runtime/error-info.ts'
import { fieldsOf } from '../../runtime/is-object.ts'
import { Button } from '../components/button.tsx'
import { CopyButton } from '../components/copy.tsx'
import { Headers } from '../components/http.tsx'
import { JsonView } from '../components/json-view.tsx'
import { Empty, Failure, Loaded, Loading, ScreenPage } from '../components/page.tsx'
import { State } from '../components/state.tsx'
import { drawable } from '../components/text.ts'
import { Time } from '../components/time.tsx'
import { useDashboard } from '../dashboard.ts'

type InboxEntry = ResponseOf<'control.inbox.read'>['entries'][number]

/** The inboxes of the instance, which keep received requests; the one that the address names is open. */
export default function InboxesScreen() {
  const { context, router, store } = useDashboard()
  const chosen = router.query.value.get('inbox')
  return (
    <ScreenPage title="Inboxes">
      <Loaded of={store.inboxes}>
        {(inboxes) => {
          const current = inboxes.find(({ name }) => name === chosen) ?? inboxes[0]
          if (!current)
            return (
              <Empty title="No inbox has got anything yet">
                <p>
                  An inbox receives whatever is sent to it, and says whether the signature of a webhook is
                  right.
                </p>
                <div class="line">
                  <code>{context.base_url}/_berth/inbox/NAME</code>
                  <CopyButton text={`${context.base_url}/_berth/inbox/events`} label="Copy an address" />
                </div>
                <p>
                  It responds with 200. With <code>?respond=503,200</code> behind its name it responds first
                  with 503, then with 200.
                </p>
              </Empty>
            )
          return (
            <>
              <nav class="tabs" aria-label="Inboxes">
                {inboxes.map(({ name, count }) => (
                  <a
                    key={name}
                    href={`/dashboard/inboxes?${new URLSearchParams({ inbox: name })}`}
                    aria-current={name === current.name ? 'page' : undefined}
                  >
                    {name}
                    <span class="count">{count}</span>
                  </a>
                ))}
              </nav>
              <Entries key={current.name} name={current.name} count={current.count} />
            </>
          )
        }}
      </Loaded>
    </ScreenPage>
  )
}

function Entries({ name, count }: { name: string; count: number }) {
  const { api, store } = useDashboard()
  const [entries, setEntries] = useState<readonly InboxEntry[] | null>(null)
  const [failure, setFailure] = useState<Error | null>(null)
  useEffect(() => {
    // The count, which the stream reports, shows that there is more.
    api.call('control.inbox.read', { params: { name } }).then(
      ({ entries: read }) => setEntries(read),
      (error: unknown) => setFailure(new Error(messageOf(error))),
    )
  }, [api, name, count])
  if (failure) return <Failure error={failure} />
  if (!entries) return <Loading />
  return (
    <>
      <p class="actions above-table">
        <Button
          look="danger"
          onClick={async () => {
            await api.call('control.inbox.clear', { params: { name } })
            await store.inboxes.load()
          }}
        >
          Empty the inbox
        </Button>
      </p>
      <ul class="deliveries">
        {entries.map((entry) => (
          <EntryView key={entry.id} entry={entry} />
        ))}
      </ul>
    </>
  )
}

const EntryView = ({ entry }: { entry: InboxEntry }) => (
  <li>
    <details>
      <summary>
        <State of={verdictOf(entry)} look={lookOf(entry)} />
        <strong>{eventOf(entry)}</strong>
        <span class="cell quiet">{entry.reason}</span>
        <span class="quiet">
          {entry.status}, <Time at={entry.received_at} />
        </span>
      </summary>
      {!entry.verified && <p class={entry.verified === false ? 'problem' : 'quiet'}>{entry.reason}</p>}
      <Headers title="Headers" headers={entry.headers} />
      <h3>Body</h3>
      {entry.json === undefined ? <pre>{drawable(entry.body)}</pre> : <JsonView value={entry.json} />}
    </details>
  </li>
)

/** Says whether the signature is right. */
const verdictOf = ({ verified }: InboxEntry): string =>
  verified === null ? 'no signature known' : verified ? 'signed' : 'wrong signature'

const lookOf = ({ verified }: InboxEntry): 'resting' | 'good' | 'bad' =>
  verified === null ? 'resting' : verified ? 'good' : 'bad'

/** The name of the event in a body, if it is one of berth's. */
function eventOf({ json }: InboxEntry): string {
  const type = fieldsOf(json).event
  return typeof type === 'string' ? type : 'a request'
}
