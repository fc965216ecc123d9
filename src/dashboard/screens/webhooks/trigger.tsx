import { useEffect, useMemo, useState } from 'preact/hooks'
import { EVENT_NAMES, type EventName } from '../../../resources/events/names.ts'
import { messageOf } from '../../../runtime/error-info.ts'
import { Dialog, FormDialog } from '../../components/dialog.tsx'
import { FieldError, SelectField, TextField } from '../../components/field.tsx'
import { CommandLines, shellQuoted } from '../../components/http.tsx'
import { Failure, Loading } from '../../components/page.tsx'
import { useDashboard } from '../../dashboard.ts'

/** Asks for an event and for its data, by a form made of the event's schema, and emits it. */
export function Trigger({ onClose }: { onClose: () => void }) {
  const { api } = useDashboard()
  const [document, setDocument] = useState<EventsDocument | Error | null>(null)
  useEffect(() => {
    api
      .send({
        method: 'GET',
        path: '/openapi.json',
        body: undefined,
        form: undefined,
        bytes: undefined,
        signal: undefined,
      })
      .then((response) => response.json())
      .then(
        (json: EventsDocument) => setDocument(json),
        (error: unknown) => setDocument(new Error(messageOf(error))),
      )
  }, [api])
  if (document === null || document instanceof Error)
    return (
      <Dialog title="Send an event" onClose={onClose}>
        {document === null ? <Loading /> : <Failure error={document} />}
      </Dialog>
    )
  return <EventForm document={document} onClose={onClose} />
}

function EventForm({ document, onClose }: { document: EventsDocument; onClose: () => void }) {
  const { api, context, notices } = useDashboard()
  const [event, setEvent] = useState<EventName>('task.completed')
  const [values, setValues] = useState<Readonly<Record<string, string>>>({})
  const fields = useMemo(() => eventFields(document, event), [document, event])
  const data = shownData(fields, values)
  const body = { event, account_id: context.account.id, data }
  return (
    <FormDialog
      title="Send an event"
      action="Send"
      onSubmit={async () => {
        const { id } = await api.call('control.events.emit', {
          body: { ...body, data: dataOf(fields, values) },
        })
        notices.done(`${event} was emitted.`, { label: 'Show it', href: `/?q=${id}` })
      }}
      onClose={onClose}
      commands={
        <CommandLines
          berth={`berth trigger ${event} --payload ${shellQuoted(JSON.stringify(data))}`}
          method="POST"
          path="/_berth/events"
          body={body}
        />
      }
    >
      <SelectField
        name="event"
        label="Event"
        value={event}
        onValue={(name) => {
          setEvent(name as EventName)
          setValues({})
        }}
        choices={EVENT_NAMES.map((name) => ({ value: name, label: name }))}
      />
      {fields.length === 0 && <p class="quiet">This event has no data of its own.</p>}
      {fields.map(({ name, kind, description, isRequired, isNullable, example }) => (
        <TextField
          key={`${event} ${name}`}
          name={name}
          label={name}
          hint={kind === 'list' ? `${description} One on each line.` : description}
          value={values[name] ?? example}
          onValue={(value) => setValues((before) => ({ ...before, [name]: value }))}
          isRequired={isRequired && !isNullable}
          {...(kind === 'list' && { rows: 3 })}
        />
      ))}
    </FormDialog>
  )
}

/** Returns the data as the lines for a terminal show it: an incomplete number stays as it is typed. */
function shownData(...parts: Parameters<typeof dataOf>): Record<string, unknown> {
  try {
    return dataOf(...parts)
  } catch (error) {
    if (error instanceof FieldError) return { ...parts[1] }
    throw error
  }
}

/** The parts of a JSON Schema that describe a field of an event. */
interface FieldSchema {
  readonly type?: string | readonly string[]
  readonly anyOf?: readonly FieldSchema[]
  readonly description?: string
}

/** The parts of the API's document that describe events. */
interface EventsDocument {
  readonly webhooks: Readonly<
    Record<
      string,
      {
        readonly post: {
          readonly requestBody: {
            readonly content: { readonly 'application/json': { readonly schema: { readonly $ref: string } } }
          }
        }
      }
    >
  >
  readonly components: {
    readonly schemas: Readonly<
      Record<
        string,
        {
          readonly properties: Readonly<Record<string, FieldSchema>>
          readonly required?: readonly string[]
          readonly examples?: readonly Readonly<Record<string, unknown>>[]
        }
      >
    >
  }
}

/** How the value of a field is typed: a number, a list with an entry a line, or a text. */
type FieldKind = 'number' | 'list' | 'text'

/** A field of an event's data. */
interface EventField {
  readonly name: string
  readonly kind: FieldKind
  readonly description: string
  readonly isRequired: boolean
  /** Whether an empty text means null. */
  readonly isNullable: boolean
  /** The example of the document, as it is typed. */
  readonly example: string
}

/** Fields that berth sets itself. */
const OWN_FIELDS = ['event', 'created_at']

/** Returns the fields of each event, by the API's document (`/openapi.json`). */
function eventFields({ webhooks, components }: EventsDocument, event: EventName): EventField[] {
  const reference = webhooks[event]?.post.requestBody.content['application/json'].schema.$ref ?? ''
  const schema = components.schemas[reference.split('/').at(-1) ?? '']
  if (schema === undefined) return []
  const { properties, required = [], examples: [example = {}] = [] } = schema
  return Object.entries(properties)
    .filter(([name]) => !OWN_FIELDS.includes(name))
    .map(([name, schema]) => ({
      name,
      kind: kindOf(typesOf(schema)),
      description: schema.description ?? '',
      isRequired: required.includes(name),
      isNullable: typesOf(schema).includes('null'),
      example: typed(example[name]),
    }))
}

/** Returns the JSON types that a field may have. */
const typesOf = ({ type = [], anyOf = [] }: FieldSchema): readonly string[] => [
  ...(typeof type === 'string' ? [type] : type),
  ...anyOf.flatMap(typesOf),
]

function kindOf(types: readonly string[]): FieldKind {
  if (types.includes('number') || types.includes('integer')) return 'number'
  return types.includes('array') ? 'list' : 'text'
}

/** Returns a value as it is typed into a field. */
function typed(value: unknown): string {
  if (value === undefined || value === null) return ''
  return Array.isArray(value) ? value.join('\n') : String(value)
}

/**
 * Returns the data of an event from the typed values, by the names of its fields. An empty field that may be missing is
 * left out.
 *
 * @throws FieldError if a number is invalid
 */
function dataOf(
  fields: readonly EventField[],
  values: Readonly<Record<string, string>>,
): Record<string, unknown> {
  const entries = fields.flatMap((field): [string, unknown][] => {
    const { name, isRequired, isNullable } = field
    const value = values[name] ?? field.example
    if (value === '' && isNullable) return [[name, null]]
    return value === '' && !isRequired ? [] : [[name, sentValue(field, value)]]
  })
  return Object.fromEntries(entries)
}

function sentValue({ name, kind }: EventField, value: string): unknown {
  if (kind === 'list') return value.split('\n').filter((line) => line.trim() !== '')
  if (kind === 'text') return value
  const number = Number(value)
  if (value.trim() === '' || Number.isNaN(number)) throw new FieldError(name, 'This is not a number.')
  return number
}
