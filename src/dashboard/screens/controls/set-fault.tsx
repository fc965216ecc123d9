import { useState } from 'preact/hooks'
import { API_OPERATION_IDS } from '../../../contract/operations.ts'
import { SelectField } from '../../components/field.tsx'
import { useDashboard } from '../../dashboard.ts'
import { FaultDialog, type FaultMatch } from '../requests/fault-dialog.tsx'

/** The choice of deliveries among the operations. */
const DELIVERIES = 'deliveries'

/** Asks which requests are to fail, how and how often, and sets that fault. */
export function SetFault({ initial, onClose }: { initial: number; onClose: () => void }) {
  const { store } = useDashboard()
  const accounts = store.accounts.open().list.value
  const [operation, setOperation] = useState('')
  const [accountId, setAccountId] = useState('')
  const match = {
    ...(operation === DELIVERIES ? { deliveries: {} } : operation !== '' && { operation }),
    ...(accountId !== '' && { account_id: accountId }),
  } as FaultMatch
  return (
    <FaultDialog title="Set a fault" match={match} initial={initial} onClose={onClose}>
      <SelectField
        name="operation"
        label="Requests"
        hint="The dashboard's own requests meet no fault that does not name them."
        value={operation}
        onValue={setOperation}
        choices={[
          { value: '', label: 'all requests' },
          { value: DELIVERIES, label: 'deliveries to webhooks' },
          ...[...API_OPERATION_IDS].map((id) => ({ value: id, label: id })),
        ]}
      />
      {accounts.length > 1 && (
        <SelectField
          name="account"
          label="Account"
          value={accountId}
          onValue={setAccountId}
          choices={[
            { value: '', label: 'every account' },
            ...accounts.map(({ id, label }) => ({ value: id, label: label || id })),
          ]}
        />
      )}
    </FaultDialog>
  )
}
