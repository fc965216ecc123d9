import { serverName } from '../../components/copy.tsx'
import { SelectField, TextField } from '../../components/field.tsx'
import { titleOf } from '../../components/goal.ts'
import { useDashboard } from '../../dashboard.ts'
import type { ToolField } from './tool-fields.ts'

/** A field for an argument of a tool: the ids of what there is are offered to choose from. */
export function ArgumentField({
  field: { name, kind, isRequired, description, choices },
  value,
  onValue,
}: {
  field: ToolField
  value: string
  onValue: (value: string) => void
}) {
  const known = useKnownIds(name)
  const shared = { name, label: name, hint: description || undefined }
  const offered = choices.length > 0 ? choices.map((one) => ({ value: one, label: one })) : known
  if (offered.length > 0)
    return (
      <SelectField
        {...shared}
        value={value}
        onValue={onValue}
        choices={[{ value: '', label: isRequired ? 'Choose …' : '' }, ...withCurrent(offered, value)]}
      />
    )
  return (
    <TextField
      {...shared}
      value={value}
      onValue={onValue}
      isRequired={isRequired}
      {...(kind === 'json' ? { rows: 3, placeholder: 'JSON' } : kind === 'lines' && { rows: 3 })}
    />
  )
}

interface Choice {
  readonly value: string
  readonly label: string
}

/** Adds the chosen id if it is of something that is gone. */
const withCurrent = (choices: readonly Choice[], value: string): readonly Choice[] =>
  value === '' || choices.some((one) => one.value === value) ? choices : [...choices, { value, label: value }]

/** Returns what an argument can name, by its name: servers, projects, tasks or builds. */
function useKnownIds(name: string): readonly Choice[] {
  const { store } = useDashboard()
  switch (name) {
    case 'serverId':
    case 'server_id':
      return store.servers
        .open()
        .list.value.map(({ id, task }) => ({ value: id, label: serverName(id, task) }))
    case 'projectId':
      return store.projects.open().list.value.map(({ id, name: label }) => ({ value: id, label }))
    case 'taskId':
      return store.tasks.open().list.value.map(({ id, goal }) => ({ value: id, label: titleOf(goal) }))
    case 'buildId':
      return store.builds.open().list.value.map(({ id, goal }) => ({ value: id, label: titleOf(goal) }))
    default:
      return []
  }
}
