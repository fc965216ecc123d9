import { useMemo } from 'preact/hooks'
import { Empty } from '../../components/empty.tsx'
import { HttpStatus } from '../../components/http-status.tsx'
import { Time } from '../../components/time.tsx'
import { useDashboard } from '../../dashboard.ts'
import type { JournalRequest } from '../../store/store.ts'
import { responseText } from './facts.ts'
import { groupErrors, hrefWith } from './filter.ts'

/** The failed requests by operation and code, the most frequent first; each leads to its requests. */
export function ErrorGroups({ requests }: { requests: readonly JournalRequest[] }) {
  const { router } = useDashboard()
  const groups = useMemo(() => groupErrors(requests), [requests])
  if (groups.length === 0)
    return (
      <Empty title="No errors">
        <p>Requests that failed stand here by operation and code, the most frequent first.</p>
      </Empty>
    )
  return (
    <div class="table error-groups">
      <ul>
        {groups.map(({ operation, status, code, count, last }) => (
          <li key={`${operation} ${status} ${code}`} class="row">
            <span class="cell number">{count}×</span>
            <span class="cell status">
              <HttpStatus of={status} />
            </span>
            <span class="cell">
              <a
                class="row-link"
                href={hrefWith(router.path.value, router.query.value, {
                  group: '',
                  request: '',
                  operation,
                  code,
                  status: code === '' ? String(status) : '',
                  errors: '1',
                })}
              >
                {operation === 'none' ? 'no operation' : operation} <code>{code}</code>
              </a>
            </span>
            <span class="cell last-message quiet">
              <bdi>{responseText(last, 'message') ?? last.path}</bdi>
            </span>
            <span class="cell time quiet">
              <Time at={last.at} />
            </span>
          </li>
        ))}
      </ul>
    </div>
  )
}
