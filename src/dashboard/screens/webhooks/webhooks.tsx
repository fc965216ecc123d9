import { useEffect, useRef, useState } from 'preact/hooks'
import { EVENT_NAMES, type EventName } from '../../../resources/events/names.ts'
import type { ResponseOf } from '../../../route-client/client.ts'
import { Button } from '../../components/button.tsx'
import { Id } from '../../components/copy.tsx'
import { Confirm, FormDialog, ShownOnce } from '../../components/dialog.tsx'
import { TextField } from '../../components/field.tsx'
import { Search } from '../../components/filters.tsx'
import { CommandLines, shellQuoted } from '../../components/http.tsx'
import { Empty, Loaded, ScreenPage, Section } from '../../components/page.tsx'
import { Time } from '../../components/time.tsx'
import { useDashboard } from '../../dashboard.ts'
import type { Webhook } from '../../store/store.ts'
import { EFFECTS, FaultDialog } from '../requests/fault-dialog.tsx'
import { DeliveryList } from './deliveries.tsx'
import { Trigger } from './trigger.tsx'

type Summary = ResponseOf<'control.deliveries.summary'>['webhooks'][number]

/** The webhooks of the account, and for the instance's owner their deliveries. */
export default function WebhooksScreen() {
  const { context, store } = useDashboard()
  const [asked, setAsked] = useState<'create' | 'trigger' | null>(null)
  const summaries = useSummaries()
  const isEmpty = store.webhooks.list.value.length === 0
  const subscribe = (
    <Button isNew look="primary" icon="plus" onClick={() => setAsked('create')}>
      Subscribe
    </Button>
  )
  return (
    <ScreenPage
      title="Webhooks"
      actions={
        <>
          {context.is_admin && store.deliveries.list.value.length > 0 && <Search label="Search deliveries" />}
          {context.is_admin && <Button onClick={() => setAsked('trigger')}>Send an event</Button>}
          {!isEmpty && subscribe}
        </>
      }
    >
      <Loaded of={store.webhooks}>
        {(webhooks) =>
          webhooks.length === 0 ? (
            <Empty title="No webhooks yet">
              <p>
                A webhook is an address that berth sends signed events to. An inbox of berth's own will do.
              </p>
              <p>{subscribe}</p>
            </Empty>
          ) : (
            <ul class="cards">
              {webhooks.map((webhook) => (
                <WebhookCard key={webhook.id} webhook={webhook} summary={summaries.get(webhook.id)} />
              ))}
            </ul>
          )
        }
      </Loaded>
      {context.is_admin && (
        <Section title="Deliveries">
          <DeliveryList />
        </Section>
      )}
      {asked === 'create' && <CreateWebhook onClose={() => setAsked(null)} />}
      {asked === 'trigger' && <Trigger onClose={() => setAsked(null)} />}
    </ScreenPage>
  )
}

/** The place of the effect that receivers fail with most. */
const UNAVAILABLE = EFFECTS.findIndex(({ effect }) => 'error' in effect && effect.error.status === 503)

/** Most events of a webhook that are named in its card. */
const NAMED = 5

function WebhookCard({ webhook, summary }: { webhook: Webhook; summary: Summary | undefined }) {
  const { api, context, store } = useDashboard()
  const [isDeleting, setDeleting] = useState(false)
  const [isFailing, setFailing] = useState(false)
  const { id, url, events, disabled_at: disabledAt } = webhook
  return (
    <li class="card">
      <div class="card-main">
        <p>
          <strong>{url}</strong> <Id id={id} />
        </p>
        <p class="quiet">
          <span title={events.join(', ')}>
            {events.length > NAMED ? `${events.length} kinds of events` : events.join(', ')}
          </span>
          {summary && <Success of={summary} />}
        </p>
        {disabledAt !== null && (
          <p class="problem">
            Switched off <Time at={disabledAt} />: the receiver answered with 410, so no events are sent.
          </p>
        )}
      </div>
      {disabledAt !== null && (
        <Button
          icon="restart"
          onClick={async () => {
            const enabled = await api.call('webhooks.enable', { params: { webhookId: id } })
            store.webhooks.add(enabled.webhook)
          }}
        >
          Switch on
        </Button>
      )}
      {context.is_admin && <Button onClick={() => setFailing(true)}>Fail the next …</Button>}
      <Button look="danger" onClick={() => setDeleting(true)}>
        Delete
      </Button>
      {isFailing && (
        <FaultDialog
          title="Fail the next deliveries"
          match={{ deliveries: { webhook_id: id } }}
          initial={UNAVAILABLE}
          onClose={() => setFailing(false)}
        >
          <p>
            To <code>{url}</code>, which works with any receiver. The next try of each comes by the{' '}
            <a href="/dashboard/controls/clock">clock</a>.
          </p>
        </FaultDialog>
      )}
      {isDeleting && (
        <Confirm
          title="Delete the webhook?"
          action="Delete"
          onClose={() => setDeleting(false)}
          onConfirm={async () => {
            await api.call('webhooks.delete', { params: { webhookId: id } })
            store.webhooks.remove(id)
          }}
        >
          <p>
            <code>{url}</code> gets no more events.
          </p>
        </Confirm>
      )}
    </li>
  )
}

/** How the deliveries to each webhook went, by its id. Asked for again when something was delivered, or not. */
function useSummaries(): ReadonlyMap<string, Summary> {
  const { api, context, notices, store } = useDashboard()
  const [summaries, setSummaries] = useState<ReadonlyMap<string, Summary>>(new Map())
  const deliveries = context.is_admin ? store.deliveries.open().list.value : null
  const asking = useRef({ isUnderWay: false, isOutdated: false })
  useEffect(() => {
    const state = asking.current
    state.isOutdated = deliveries !== null
    // One call at a time: deliveries may arrive faster than they are counted.
    if (state.isUnderWay || !state.isOutdated) return
    state.isUnderWay = true
    void notices
      .attempt(async () => {
        while (state.isOutdated) {
          state.isOutdated = false
          const { webhooks } = await api.call('control.deliveries.summary')
          setSummaries(new Map(webhooks.map((one) => [one.webhook_id, one])))
        }
      })
      .then(() => {
        state.isUnderWay = false
      })
  }, [api, notices, deliveries])
  return summaries
}

/** How the deliveries to a webhook went, in words, with a link to them. */
function Success({
  of: { webhook_id: id, success_rate: rate, delivered, failed, pending },
}: {
  of: Summary
}) {
  if (delivered + failed + pending === 0) return <> · nothing was sent yet</>
  return (
    <>
      {' · '}
      <a href={`/dashboard/webhooks?webhook=${id}`}>
        {rate !== null && (
          <span class={failed === 0 ? '' : 'problem'}>
            {Math.floor(rate * 1000) / 10} % of {delivered + failed} delivered
          </span>
        )}
        {rate !== null && pending > 0 && ', '}
        {pending > 0 && `${pending} waiting for the next try`}
      </a>
    </>
  )
}

/** Says that the instance sends nothing to this machine, as long as that holds, and offers to change it. */
function AdmitLocal() {
  const { api, store } = useDashboard()
  const setting = store.localWebhooks.open().list.value[0]
  if (setting === undefined || setting.allowed) return null
  return (
    <div class="notice">
      <p>
        This instance sends events to public https addresses only, so it refuses this one.{' '}
        <code>berth serve --allow-local-webhooks</code> admits it from the start.
      </p>
      <Button
        onClick={async () => {
          await api.call('control.localWebhooks.update', { body: { allowed: true } })
          // The button is gone then, and the focus with it.
          document.querySelector<HTMLElement>('dialog input[name="url"]')?.focus()
          await store.localWebhooks.load()
        }}
      >
        Admit local webhooks until the next start
      </Button>
    </div>
  )
}

/** Reports whether a URL is of this machine, or not encrypted, which is for this machine only. */
function isOnThisMachine(text: string): boolean {
  const url = URL.parse(text)
  if (url === null) return false
  return url.protocol === 'http:' || /^(127\.[\d.]+|\[::1\]|(.+\.)?localhost)$/.test(url.hostname)
}

/** Asks where to send events, subscribes the address and shows its secret. */
function CreateWebhook({ onClose }: { onClose: () => void }) {
  const { api, context, store } = useDashboard()
  const inbox = `${context.base_url}/_berth/inbox/events`
  const [url, setUrl] = useState(context.is_admin ? inbox : '')
  const [secret, setSecret] = useState<string | null>(null)
  const [events, setEvents] = useState<ReadonlySet<EventName>>(new Set())
  const names = EVENT_NAMES.filter((name) => events.has(name))
  const body = { url, ...(names.length > 0 && { events: names }) }
  const create = async (): Promise<void> => {
    const { secret: text, ...webhook } = await api.call('webhooks.create', { body })
    store.webhooks.add({ ...webhook, disabled_at: null })
    setSecret(text)
  }
  if (secret !== null)
    return (
      <ShownOnce
        title="The webhook's secret"
        about="Receivers check signatures with it. It is shown this once."
        text={secret}
        onClose={onClose}
      />
    )
  return (
    <FormDialog
      title="Subscribe to events"
      action="Subscribe"
      onSubmit={create}
      staysOpen
      onClose={onClose}
      commands={
        <CommandLines
          berth={`berth webhooks create ${shellQuoted(url)}${names.length > 0 ? ` --events ${names}` : ''}`}
          method="POST"
          path="/webhooks"
          body={body}
        />
      }
    >
      <TextField
        name="url"
        label="Address"
        value={url}
        onValue={setUrl}
        isRequired
        hint={
          context.is_admin ? (
            <>
              <code>{inbox}</code> is an <a href="/dashboard/inboxes">inbox</a> of this instance: it keeps
              what it gets. With <code>?respond=503,200</code> behind it, it refuses each event once.
            </>
          ) : (
            'A public https address, unless the instance admits others.'
          )
        }
      />
      {context.is_admin && isOnThisMachine(url) && <AdmitLocal />}
      <fieldset class="choice">
        <legend>Events: all, if none is ticked</legend>
        {EVENT_NAMES.map((name) => (
          <label key={name}>
            <input
              type="checkbox"
              checked={events.has(name)}
              onChange={({ currentTarget }) => {
                const next = new Set(events)
                if (currentTarget.checked) next.add(name)
                else next.delete(name)
                setEvents(next)
              }}
            />
            {name}
          </label>
        ))}
      </fieldset>
    </FormDialog>
  )
}
