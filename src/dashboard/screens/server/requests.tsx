import { HoldButton } from '../../components/live-list.tsx'
import { Search } from '../../components/search.tsx'
import type { Server } from '../../store/store.ts'
import { Filters } from '../requests/filters.tsx'
import { RequestList, useRequests } from '../requests/request-list.tsx'

/** The requests about a server as they come, the newest at the top. */
export function ServerRequests({ server }: { server: Server }) {
  const requests = useRequests(server.id)
  return (
    <>
      <div class="actions above-table">
        <Search label="Search requests" />
        <Filters isOfServer />
        <HoldButton held={requests.held} />
      </div>
      <RequestList requests={requests} />
    </>
  )
}
