import { shortId } from '../../components/copy.tsx'
import { useDashboard } from '../../dashboard.ts'
import type { JournalRequest } from '../../store/store.ts'

/** Who sent a request: berth's own client, or the account and its key, by their names where they are known. */
export function Who({ request }: { request: JournalRequest }) {
  const { store } = useDashboard()
  const { account_id: accountId, api_key_id: keyId, client } = request
  if (accountId === null) return <>no valid key</>
  const account = store.accounts.open().get(accountId)
  const key = keyId === null ? undefined : store.keys.open().get(keyId)
  const name = client ?? (key?.label || (keyId === null ? '' : shortId(keyId)))
  return (
    <>
      <bdi title={accountId}>{account?.label || shortId(accountId)}</bdi>
      {name !== '' && (
        <>
          {' · '}
          <bdi title={keyId ?? ''}>{name}</bdi>
        </>
      )}
    </>
  )
}
