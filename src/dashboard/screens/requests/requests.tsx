import { useMemo } from 'preact/hooks'
import { Button } from '../../components/button.tsx'
import { HoldButton } from '../../components/live-list.tsx'
import { Page } from '../../components/page.tsx'
import { Search } from '../../components/search.tsx'
import { Tabs } from '../../components/tabs.tsx'
import { useDashboard } from '../../dashboard.ts'
import { isFailed } from './facts.ts'
import { hrefWith } from './filter.ts'
import { Filters } from './filters.tsx'
import { RequestList, useRequests } from './request-list.tsx'

/** Requests to the API as they come, the newest at the top; one of them beside the list. */
export default function Requests() {
  const { store, router, api, notices } = useDashboard()
  const query = router.query.value
  const requests = useRequests()
  const { shown, held, isGrouped } = requests
  const clear = async (): Promise<void> => {
    const { deleted } = await api.call('control.requests.clear')
    store.requests.clear()
    router.setQuery('request', '')
    notices.done(`${deleted} requests were removed from the journal.`)
  }
  const failures = useMemo(() => shown.filter(isFailed).length, [shown])
  const hrefOf = (group: string): string => hrefWith(router.path.value, query, { group })
  return (
    <Page
      title="Requests"
      isFull
      actions={
        <>
          <Search label="Search requests" />
          {!isGrouped && <HoldButton held={held} />}
          <Button icon="trash" onClick={clear}>
            Clear
          </Button>
        </>
      }
    >
      <Tabs
        label="Views of the requests"
        here={hrefOf(isGrouped ? 'errors' : '')}
        tabs={[
          { href: hrefOf(''), label: 'All' },
          { href: hrefOf('errors'), label: 'Errors by cause', count: failures },
        ]}
      />
      <Filters />
      <RequestList requests={requests} />
    </Page>
  )
}
