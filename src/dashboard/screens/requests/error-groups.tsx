import { useEffect, useState } from 'preact/hooks'
import type { PartsOf, ResponseOf } from '../../../route-client/client.ts'
import { messageOf } from '../../api/failure.ts'
import { Empty } from '../../components/empty.tsx'
import { HttpStatus } from '../../components/http-status.tsx'
import { Failure, Loading } from '../../components/loaded.tsx'
import { Time } from '../../components/time.tsx'
import { useDashboard } from '../../dashboard.ts'
import { isFailed } from './facts.ts'
import { hrefWith } from './filter.ts'

type Groups = ResponseOf<'control.requests.errors'>['errors']
type GroupsQuery = NonNullable<PartsOf<'control.requests.errors'>['query']>

/** The failed requests that the journal keeps, by operation and code, the latest first; each leads to its requests. */
export function ErrorGroups() {
  const { api, router, store } = useDashboard()
  const [groups, setGroups] = useState<Groups | Error | null>(null)
  const query = router.query.value
  const [account, operation, status] = ['account', 'operation', 'status'].map((name) => query.get(name) ?? '')
  const showsOwn = query.get('own') === '1'
  const requests = store.requests.open().list.value
  // The stream tells that another has failed, or that all were forgotten.
  const latest = requests.find(isFailed)?.id
  useEffect(() => {
    let isWanted = true
    const filters: GroupsQuery = {
      ...(account && { account_id: account }),
      ...(operation && operation !== 'none' && { operation }),
      ...(status && { status }),
      ...(!showsOwn && { own: 'false' }),
    }
    api.call('control.requests.errors', { query: filters }).then(
      ({ errors }) =>
        isWanted &&
        setGroups(operation === 'none' ? errors.filter(({ operation: id }) => id === null) : errors),
      (error: unknown) => isWanted && setGroups(new Error(messageOf(error))),
    )
    return () => {
      isWanted = false
    }
  }, [api, account, operation, status, showsOwn, latest])
  if (groups instanceof Error) return <Failure error={groups} />
  if (groups === null) return <Loading />
  if (groups.length === 0)
    return (
      <Empty title="No errors">
        <p>Requests that failed stand here by operation and code, the latest first.</p>
      </Empty>
    )
  return (
    <div class="table error-groups">
      <ul>
        {groups.map(({ operation, method, status, code, count, last_at: lastAt, last_id: lastId }) => {
          const last = store.requests.get(lastId)
          return (
            <li key={`${operation} ${method} ${status} ${code}`} class="row">
              <span class="cell number">{count}×</span>
              <span class="cell status">
                <HttpStatus of={status} />
              </span>
              <span class="cell">
                <a
                  class="row-link"
                  href={hrefWith(router.path.value, query, {
                    group: '',
                    request: lastId,
                    operation: operation ?? 'none',
                    code: code ?? '',
                    status: String(status),
                    errors: '1',
                  })}
                >
                  {operation ?? 'no operation'} <code>{code}</code>
                </a>
              </span>
              <span class="cell last-message quiet">
                <bdi>{last && (last.said?.message ?? last.path)}</bdi>
              </span>
              <span class="cell time quiet">
                <Time at={lastAt} />
              </span>
            </li>
          )
        })}
      </ul>
    </div>
  )
}
