import { useState } from 'preact/hooks'
import { API_OPERATIONS, listOperations } from '../../../../contract/operations.ts'
import { SelectField } from '../../../components/field.tsx'
import type { Server } from '../../../store/store.ts'
import { FaultDialog, type FaultMatch } from '../../requests/fault-dialog.tsx'

/** The operations on a server. */
const OPERATIONS = listOperations(API_OPERATIONS).filter(({ path }) => path.includes('{serverId}'))

/** Asks which requests about a server are to fail, and how. */
export function RequestFaultDialog({ server, onClose }: { server: Server; onClose: () => void }) {
  const [chosen, setChosen] = useState('')
  const operation = OPERATIONS.find(({ id }) => id === chosen)
  const match = {
    ...(operation && { method: operation.method }),
    path: operation ? operation.path.replace('{serverId}', server.id) : `/servers/${server.id}**`,
  } as FaultMatch
  return (
    <FaultDialog title="Set a fault" match={match} initial={1} onClose={onClose}>
      <SelectField
        name="operation"
        label="Which requests about the server"
        value={chosen}
        onValue={setChosen}
        choices={[{ value: '', label: 'All' }, ...OPERATIONS.map(({ id }) => ({ value: id, label: id }))]}
      />
    </FaultDialog>
  )
}
