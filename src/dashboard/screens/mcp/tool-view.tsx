import { useEffect, useMemo, useRef, useState } from 'preact/hooks'
import { messageOf } from '../../../runtime/error-info.ts'
import { Button } from '../../components/button.tsx'
import { CopyButton, serverLabel } from '../../components/copy.tsx'
import { isSubmit, SubmitKeys, submitKeysTitle } from '../../components/dialog.tsx'
import { FieldError, RefusedField, SelectField, TextField } from '../../components/field.tsx'
import { CommandLines } from '../../components/http.tsx'
import { JsonView } from '../../components/json-view.tsx'
import { State } from '../../components/state.tsx'
import { goalTitle } from '../../components/text.ts'
import { span } from '../../components/time.tsx'
import { useDashboard } from '../../dashboard.ts'
import {
  ACCEPTED,
  argumentsOf,
  callMcpTool,
  callOf,
  MCP_PATH,
  type Tool,
  type ToolCallResult,
  type ToolField,
  toolFields,
  toolJson,
} from './tools.ts'

/** Properties of a tool beside the list. */
interface ToolViewProps {
  name: string
  /** Undefined if no tool has the name. */
  tool: Tool | undefined
  /** The ids that were chosen last, by the name of their argument. */
  ids: Readonly<Record<string, string>>
  onId: (name: string, id: string) => void
  onClose: () => void
}

/** A tool: its purpose, a form that calls it, its response, and its schemas. */
export const ToolForm = ({ name, tool, onClose, ...ids }: ToolViewProps) => (
  <aside class="detail" aria-label="The tool">
    <div class="detail-head">
      <h2>{tool ? <code>{name}</code> : 'There is no such tool'}</h2>
      <Button look="quiet" icon="close" label="Close the tool" onClick={onClose} />
    </div>
    {tool ? (
      <Known tool={tool} {...ids} />
    ) : (
      <p>
        No tool is named <code>{name}</code>.
      </p>
    )}
  </aside>
)

function Known({ tool, ids, onId }: { tool: Tool } & Pick<ToolViewProps, 'ids' | 'onId'>) {
  const { name, description, annotations, inputSchema, outputSchema } = tool
  return (
    <>
      <p>
        <bdi>{description}</bdi>
      </p>
      <p class="chips">
        {annotations?.readOnlyHint && <span class="chip">reads only</span>}
        {annotations?.destructiveHint && <span class="chip">can remove, end or replace</span>}
        {annotations?.openWorldHint && <span class="chip">reaches beyond berth</span>}
      </p>
      <Trial tool={tool} ids={ids} onId={onId} />
      <Schema title="Schema of the arguments" schema={inputSchema} name={name} />
      <Schema title="Schema of the result" schema={outputSchema} name={name} />
    </>
  )
}

const Schema = ({ title, schema, name }: { title: string; schema: unknown; name: string }) => (
  <details class="headers">
    <summary>{title}</summary>
    <div class="body-head">
      <CopyButton
        text={JSON.stringify(schema, null, 2)}
        label={`Copy the ${title.toLowerCase()} of ${name}`}
      />
    </div>
    <JsonView value={schema} />
  </details>
)

/** A call that responded, or was refused. */
type Outcome = (ToolCallResult & { readonly ms: number }) | Error

/** Takes the arguments, by fields or as JSON, calls the tool and shows its response. */
function Trial({ tool, ids, onId }: { tool: Tool } & Pick<ToolViewProps, 'ids' | 'onId'>) {
  const { api } = useDashboard()
  const fields = useMemo(() => toolFields(tool), [tool])
  const [typed, setTyped] = useState<Readonly<Record<string, string>>>({})
  /** The arguments as JSON, once a person asks to write them so. */
  const [json, setJson] = useState<string | null>(null)
  const [failure, setFailure] = useState<FieldError | null>(null)
  const [outcome, setOutcome] = useState<Outcome | null>(null)
  const running = useRef<AbortController | null>(null)
  const [isBusy, setBusy] = useState(false)
  // Leaving the tool ends a call that nobody waits for any more.
  useEffect(() => () => running.current?.abort(), [])
  const values = { ...ids, ...typed }
  const read = (): Record<string, unknown> =>
    json === null
      ? argumentsOf(fields, tool, values)
      : (toolJson('arguments', json) as Record<string, unknown>)
  const call = async (): Promise<void> => {
    setFailure(null)
    const abort = new AbortController()
    running.current = abort
    const began = performance.now()
    try {
      const args = read()
      setBusy(true)
      setOutcome(null)
      const result = await callMcpTool(api, tool.name, args, abort.signal)
      setOutcome({ ...result, ms: performance.now() - began })
    } catch (error) {
      if (error instanceof FieldError) setFailure(error)
      else if (!abort.signal.aborted) setOutcome(new Error(messageOf(error)))
    }
    setBusy(false)
  }
  const [needed, optional] = [fields.filter(isNeeded), fields.filter((field) => !isNeeded(field))]
  const fieldOf = (field: ToolField) => (
    <ArgumentField
      key={field.name}
      field={field}
      value={values[field.name] ?? ''}
      onValue={(value) => {
        setTyped((before) => ({ ...before, [field.name]: value }))
        if (field.name.endsWith('Id')) onId(field.name, value)
      }}
    />
  )
  return (
    <>
      <form
        class="trial"
        onSubmit={(event) => {
          event.preventDefault()
          if (!isBusy) void call()
        }}
        onKeyDown={(event) => {
          if (!isSubmit(event)) return
          event.preventDefault()
          event.currentTarget.requestSubmit()
        }}
      >
        <RefusedField.Provider value={failure}>
          {json !== null ? (
            <TextField name="arguments" label="Arguments, JSON" value={json} onValue={setJson} rows={8} />
          ) : (
            <>
              {needed.map(fieldOf)}
              {optional.length > 0 && (
                <details class="optional" open={needed.length === 0}>
                  <summary>
                    {optional.length} optional {optional.length === 1 ? 'argument' : 'arguments'}
                  </summary>
                  {optional.map(fieldOf)}
                </details>
              )}
            </>
          )}
        </RefusedField.Provider>
        {fields.length === 0 && json === null && <p class="quiet">It takes no arguments.</p>}
        <div class="actions">
          <Button
            type="submit"
            look={tool.name.endsWith('_delete') ? 'danger' : 'primary'}
            disabled={isBusy}
            title={submitKeysTitle()}
          >
            {isBusy ? 'Calling …' : 'Call'}
            <SubmitKeys />
          </Button>
          {isBusy && <Button onClick={() => running.current?.abort()}>Cancel</Button>}
          {fields.length > 0 && (
            <Button
              look="plain"
              onClick={() => setJson(json === null ? JSON.stringify(shown(read), null, 2) : null)}
            >
              {json === null ? 'As JSON' : 'As a form'}
            </Button>
          )}
        </div>
      </form>
      {outcome !== null && <Reply outcome={outcome} />}
      <CommandLines method="POST" path={MCP_PATH} body={callOf(tool.name, shown(read))} accept={ACCEPTED} />
    </>
  )
}

const isNeeded = ({ isRequired }: ToolField): boolean => isRequired

/** Returns the arguments as they are now; none while they cannot be read. */
function shown(read: () => Record<string, unknown>): Record<string, unknown> {
  try {
    return read()
  } catch (error) {
    if (error instanceof FieldError) return {}
    throw error
  }
}

/** What a tool responded. */
const Reply = ({ outcome }: { outcome: Outcome }) =>
  outcome instanceof Error ? (
    <p class="notice failure" role="alert">
      {outcome.message}
    </p>
  ) : (
    <section aria-label="The result" aria-live="polite">
      <div class="body-head">
        <h3>Result</h3>
        <State of={outcome.isError ? 'failed' : 'done'} />
        <span class="quiet">{span(outcome.ms)}</span>
        <CopyButton text={JSON.stringify(outcome.value, null, 2)} label="Copy the result" />
      </div>
      <JsonView value={outcome.value} />
    </section>
  )

/** A field for an argument of a tool, which offers the ids of existing objects. */
function ArgumentField({
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
        .list.value.map(({ id, task }) => ({ value: id, label: serverLabel(id, task) }))
    case 'projectId':
      return store.projects.open().list.value.map(({ id, name: label }) => ({ value: id, label }))
    case 'taskId':
      return store.tasks.open().list.value.map(({ id, goal }) => ({ value: id, label: goalTitle(goal) }))
    case 'buildId':
      return store.builds.open().list.value.map(({ id, goal }) => ({ value: id, label: goalTitle(goal) }))
    default:
      return []
  }
}
