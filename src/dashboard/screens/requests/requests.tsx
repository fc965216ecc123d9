import { Button } from '../../components/button.tsx'
import { HoldButton } from '../../components/live-list.tsx'
import { Page } from '../../components/page.tsx'
import { Search } from '../../components/search.tsx'
import { Tabs } from '../../components/tabs.tsx'
import { useDashboard } from '../../dashboard.ts'
import { ErrorGroups } from './error-groups.tsx'
import { hrefWith } from './filter.ts'
import { Filters } from './filters.tsx'
import { RequestList, useRequests } from './request-list.tsx'

/** Requests to the API as they come, the newest at the top; one of them beside the list. */
export default function Requests() {
  const { store, router, api, notices } = useDashboard()
  const query = router.query.value
  const requests = useRequests()
  const { held } = requests
  const isGrouped = query.get('group') === 'errors'
  const clear = async (): Promise<void> => {
    const { deleted } = await api.call('control.requests.clear')
    store.requests.clear()
    router.setQuery('request', '')
    notices.done(`${deleted} requests were removed from the journal.`)
  }
  const all = hrefWith(router.path.value, query, { group: '' })
  // Groups are of all requests that the journal keeps: filters that only the list has do not go with them.
  const errors = hrefWith(router.path.value, query, {
    group: 'errors',
    ...Object.fromEntries(['q', 'server', 'code', 'errors', 'fault', 'request'].map((name) => [name, ''])),
  })
  return (
    <Page
      title="Requests"
      isFull
      actions={
        <>
          {!isGrouped && <Search label="Search requests" />}
          {!isGrouped && <HoldButton held={held} />}
          <Button icon="trash" onClick={clear}>
            Clear
          </Button>
        </>
      }
    >
      <Tabs
        label="Views of the requests"
        here={isGrouped ? errors : all}
        tabs={[
          { href: all, label: 'All' },
          { href: errors, label: 'Errors by cause' },
        ]}
      />
      <Filters isGrouped={isGrouped} />
      {isGrouped ? <ErrorGroups /> : <RequestList requests={requests} />}
    </Page>
  )
}
