import { isTooDeep } from '../../../runtime/validation/json-faults.ts'
import { Button } from '../../components/button.tsx'
import { useClockMover } from '../../components/clock-move.tsx'
import { CopyButton, shortId } from '../../components/copy.tsx'
import { Select } from '../../components/filters.tsx'
import { Headers } from '../../components/http.tsx'
import { JsonView, LongText } from '../../components/json-view.tsx'
import { Loaded } from '../../components/page.tsx'
import { State } from '../../components/state.tsx'
import { Time } from '../../components/time.tsx'
import { useDashboard } from '../../dashboard.ts'
import type { Delivery, Webhook } from '../../store/store.ts'

/** Deliveries that are listed: the others are found by the filters. */
const LISTED = 100

/** What was delivered, or not: each delivery with its attempts. */
export function DeliveryList() {
  const { store, router } = useDashboard()
  return (
    <Loaded of={store.deliveries}>
      {(deliveries) => {
        if (deliveries.length === 0) return <p class="quiet">Nothing was delivered yet.</p>
        const shown = filterDeliveries(deliveries, router.query.value)
        return (
          <>
            <DeliveryFilters deliveries={deliveries} />
            {shown.length === 0 ? (
              <p class="quiet">
                No delivery fits the filters. <a href={router.path.value}>Show all</a>
              </p>
            ) : (
              <ul class="deliveries">
                {shown.slice(0, LISTED).map((delivery) => (
                  <DeliveryView key={delivery.id} delivery={delivery} />
                ))}
              </ul>
            )}
            {shown.length > LISTED && (
              <p class="quiet">
                The newest {LISTED} of {shown.length} are listed.
              </p>
            )}
          </>
        )
      }}
    </Loaded>
  )
}

function DeliveryView({ delivery }: { delivery: Delivery }) {
  const { api, clock, context, router, store } = useDashboard()
  const { move, question } = useClockMover()
  const { id, event, url, status, created_at: createdAt, next_attempt_at: nextAt, attempts } = delivery
  const isOpen = router.query.value.get('delivery') === id
  const last = attempts.at(-1)
  return (
    <li>
      <details
        open={isOpen}
        onToggle={({ currentTarget }) => {
          if (currentTarget.open !== isOpen) router.setQuery('delivery', currentTarget.open ? id : '')
        }}
      >
        <summary>
          <State of={status} />
          <strong>{event}</strong>
          <span class="cell" title={url}>
            {url}
          </span>
          <span class="quiet">
            {nextAt !== null && (
              <>
                next try <Time at={nextAt} isDue />
                {' · '}
              </>
            )}
            {attempts.length === 1 ? '1 attempt' : `${attempts.length} attempts`}
            {' · '}
            <Time at={createdAt} />
          </span>
          {last && status !== 'delivered' && (
            <span class="quiet reason">{last.error ?? `The receiver answered with ${last.status}.`}</span>
          )}
        </summary>
        {!context.is_report && (
          <p class="actions">
            {nextAt !== null && Date.parse(nextAt) > clock.now.value && (
              <Button icon="clock" onClick={() => move({ set: nextAt })}>
                Move the clock to the next try
              </Button>
            )}
            <Button
              icon="restart"
              onClick={async () => {
                await api.call('control.deliveries.retry', { params: { deliveryId: id } })
                await store.deliveries.load()
              }}
            >
              {status === 'delivered' ? 'Send again' : 'Try now'}
            </Button>
          </p>
        )}
        {question}
        <ol class="attempts">
          {attempts.map((attempt) => (
            <Attempt key={attempt.number} attempt={attempt} />
          ))}
        </ol>
      </details>
    </li>
  )
}

const Attempt = ({ attempt }: { attempt: Delivery['attempts'][number] }) => (
  <li>
    <details>
      <summary>
        <span>Attempt {attempt.number}</span>
        <strong>{attempt.status ?? attempt.error}</strong>
        <span class="quiet">
          {attempt.ms} ms, <Time at={attempt.at} />
        </span>
      </summary>
      {attempt.error !== null && attempt.status !== null && <p class="problem">{attempt.error}</p>}
      <Headers title="Headers of the request" headers={attempt.request.headers} />
      <BodyText title="Request" text={attempt.request.body} />
      {attempt.response === null ? (
        <p class="problem">{attempt.error ?? 'No response arrived.'}</p>
      ) : (
        <>
          <Headers title="Headers of the response" headers={attempt.response.headers} />
          <BodyText title="Response" text={attempt.response.body} />
        </>
      )}
    </details>
  </li>
)

/** A body, as JSON if it is. */
function BodyText({ title, text }: { title: string; text: string }) {
  const value = jsonOf(text)
  return (
    <section aria-label={`Body of the ${title.toLowerCase()}`}>
      <div class="body-head">
        <h3>{title}</h3>
        {text !== '' && <CopyButton text={text} label={`Copy the body of the ${title.toLowerCase()}`} />}
      </div>
      {text === '' ? (
        <p class="quiet">It had no body.</p>
      ) : value === undefined ? (
        <div class="json">
          <bdi>
            <LongText text={text} />
          </bdi>
        </div>
      ) : (
        <JsonView value={value} />
      )}
    </section>
  )
}

/**
 * Parses JSON. Returns undefined for a text that is not JSON, or is nested so deeply that the page could not draw it: a
 * receiver responds with whatever it likes.
 */
function jsonOf(text: string): unknown {
  try {
    return isTooDeep(text) ? undefined : JSON.parse(text)
  } catch {
    return undefined
  }
}

/** Returns the text of a delivery that a search looks through, in lower case. */
const textOf = ({ id, event, url, status, attempts }: Delivery): string =>
  [id, event, url, status, ...attempts.flatMap((attempt) => [attempt.status ?? '', attempt.error ?? ''])]
    .join(' ')
    .toLowerCase()

/** Returns the deliveries that the filters and the search of an address let pass. */
function filterDeliveries(deliveries: readonly Delivery[], query: URLSearchParams): readonly Delivery[] {
  const sought = (query.get('q') ?? '').toLowerCase()
  const allows = (name: string, value: string): boolean => (query.get(name) || value) === value
  return deliveries.filter(
    (delivery) =>
      allows('webhook', delivery.webhook_id) &&
      allows('event', delivery.event) &&
      allows('event_id', delivery.event_id) &&
      allows('status', delivery.status) &&
      (sought === '' || textOf(delivery).includes(sought)),
  )
}

/** The filters of the deliveries by endpoint, event and state, all in the address. */
function DeliveryFilters({ deliveries }: { deliveries: readonly Delivery[] }) {
  const { router, store } = useDashboard()
  const webhooks = store.webhooks.open().list.value
  const eventId = router.query.value.get('event_id') ?? ''
  const events = [...new Set(deliveries.map(({ event }) => event))].sort()
  return (
    <div class="filters">
      <Select
        name="webhook"
        label="Endpoint"
        choices={[{ value: '', label: 'All endpoints' }, ...endpointsOf(webhooks, deliveries)]}
      />
      <Select
        name="event"
        label="Event"
        choices={[
          { value: '', label: 'All events' },
          ...events.map((event) => ({ value: event, label: event })),
        ]}
      />
      {eventId !== '' && (
        <Select
          name="event_id"
          label="One event"
          choices={[
            { value: '', label: 'Of any event' },
            { value: eventId, label: `of ${shortId(eventId)}` },
          ]}
        />
      )}
      <Select
        name="status"
        label="State"
        choices={[
          { value: '', label: 'All states' },
          ...STATUSES.map((status) => ({ value: status, label: status })),
        ]}
      />
      {store.deliveries.hasOlder.value && (
        <Button onClick={() => store.deliveries.loadOlder()}>Load older ones</Button>
      )}
    </div>
  )
}

const STATUSES = ['pending', 'delivered', 'failed', 'disabled'] satisfies readonly Delivery['status'][]

/** Returns the webhooks of the account and those of the deliveries, by their URL; of several with one also by id. */
function endpointsOf(webhooks: readonly Webhook[], deliveries: readonly Delivery[]) {
  const urls = new Map([
    ...webhooks.map(({ id, url }) => [id, url] as const),
    ...deliveries.map(({ webhook_id: id, url }) => [id, url] as const),
  ])
  const isShared = (url: string): boolean => [...urls.values()].filter((one) => one === url).length > 1
  return [...urls].map(([id, url]) => ({ value: id, label: isShared(url) ? `${url} (${shortId(id)})` : url }))
}
