import { Button } from '../../components/button.tsx'
import { shortId } from '../../components/copy.tsx'
import { Select } from '../../components/select.tsx'
import { useDashboard } from '../../dashboard.ts'
import type { Delivery, Webhook } from '../../store/store.ts'

/** Returns the text of a delivery that a search looks through, in lower case. */
const textOf = ({ id, event, url, status, attempts }: Delivery): string =>
  [id, event, url, status, ...attempts.flatMap((attempt) => [attempt.status ?? '', attempt.error ?? ''])]
    .join(' ')
    .toLowerCase()

/** Returns the deliveries that the filters and the search of an address let pass. */
export function filterDeliveries(
  deliveries: readonly Delivery[],
  query: URLSearchParams,
): readonly Delivery[] {
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
export function DeliveryFilters({ deliveries }: { deliveries: readonly Delivery[] }) {
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
