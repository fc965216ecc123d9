import type { EventName } from '../../../resources/events/names.ts'
import { FieldError } from '../../components/field.tsx'

/** The parts of a JSON Schema that describe a field of an event. */
interface FieldSchema {
  readonly type?: string
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
  /** Whether an empty text stands for null. */
  readonly isNullable: boolean
  /** The example of the document, as it is typed. */
  readonly example: string
}

/** Fields that berth sets itself. */
const OWN_FIELDS = ['event', 'created_at']

/** Returns the fields of each event, by the API's document (`/openapi.json`). */
export function eventFields({ webhooks, components }: EventsDocument, event: EventName): EventField[] {
  const reference = webhooks[event]?.post.requestBody.content['application/json'].schema.$ref ?? ''
  const schema = components.schemas[reference.split('/').at(-1) ?? '']
  if (schema === undefined) return []
  const { properties, required = [], examples: [example = {}] = [] } = schema
  return Object.entries(properties)
    .filter(([name]) => !OWN_FIELDS.includes(name))
    .map(([name, { type, anyOf = [], description = '' }]) => ({
      name,
      kind: type === 'number' || type === 'integer' ? 'number' : type === 'array' ? 'list' : 'text',
      description,
      isRequired: required.includes(name),
      isNullable: anyOf.some((one) => one.type === 'null'),
      example: typed(example[name]),
    }))
}

/** Returns a value as it is typed into a field. */
function typed(value: unknown): string {
  if (value === undefined || value === null) return ''
  return Array.isArray(value) ? value.join('\n') : String(value)
}

/**
 * Returns the data of an event from what was typed, by the names of its fields. An empty field that may be missing is
 * left out.
 *
 * @throws FieldError if a number is none
 */
export function dataOf(
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
