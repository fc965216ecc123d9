import { FormDialog } from '../../components/dialog.tsx'
import type { Dashboard } from '../../dashboard.ts'
import { useDashboard } from '../../dashboard.ts'
import type { WholeRequest } from '../../store/store.ts'

/** Sends a request again with the session of the browser, and goes to the new one. */
export async function sendAgain(
  { api, router, notices }: Dashboard,
  { method, path, request, response_type: type }: WholeRequest,
): Promise<void> {
  const { status, headers, body } = await api.request(
    { method, path, body: request?.body, form: undefined, bytes: undefined, signal: undefined },
    {
      ...(type?.startsWith('text/event-stream') && { accept: 'text/event-stream' }),
      // Faults leave the dashboard's own requests alone, but this one stands for a client's.
      'x-berth-client': 'person',
    },
  )
  // A stream may go on for long. What it began ends with it.
  await body?.cancel()
  notices.done(`Sent again: ${status}.`)
  const id = headers.get('x-request-id')
  if (id !== null) router.setQuery('request', id)
}

/** Asks before a request is sent again that may change something. */
export function SendAgain({ request, onClose }: { request: WholeRequest; onClose: () => void }) {
  const dashboard = useDashboard()
  const { context } = dashboard
  const { method, path, account_id: accountId } = request
  const hidesSecrets = JSON.stringify(request.request?.body ?? null).includes('***')
  return (
    <FormDialog
      title="Send it again?"
      action="Send"
      onSubmit={() => sendAgain(dashboard, request)}
      onClose={onClose}
    >
      <p>
        <span class="method">{method}</span> <bdi>{path}</bdi> is done once more
        {accountId !== context.account.id && (
          <>
            , as <bdi>{context.account.label || context.account.id}</bdi>: with your session, not with the key
            that it had
          </>
        )}
        .
      </p>
      {hidesSecrets && <p>Secrets in its body are masked in the journal, and are sent as ***.</p>}
    </FormDialog>
  )
}
