import { FieldError } from '../../components/field.tsx'
import type { Tool } from './endpoint.ts'

/** The parts of a JSON Schema that say how a value is typed. */
interface FieldSchema {
  readonly type?: string | readonly string[]
  readonly enum?: readonly string[]
  readonly anyOf?: readonly FieldSchema[]
  readonly description?: string
  readonly maxLength?: number
}

/** How the value of an argument is typed. */
type FieldKind = 'text' | 'lines' | 'number' | 'choice' | 'json'

/** An argument of a tool. */
export interface ToolField {
  readonly name: string
  readonly kind: FieldKind
  readonly isRequired: boolean
  readonly description: string
  /** The values of a choice. */
  readonly choices: readonly string[]
}

/** Characters from which a text has several lines. */
const LONG_TEXT = 100_000

/** Arguments without a limit that have several lines. */
const LINES = ['content', 'command', 'stdin']

/** Returns the arguments of a tool. */
export function fieldsOf({ inputSchema }: Tool): ToolField[] {
  const required = inputSchema.required ?? []
  const properties = Object.entries((inputSchema.properties ?? {}) as Record<string, FieldSchema>)
  return properties.map(([name, schema]) => ({
    name,
    ...typingOf(name, schema),
    isRequired: required.includes(name),
    description: schema.description ?? '',
  }))
}

function typingOf(name: string, schema: FieldSchema): Pick<ToolField, 'kind' | 'choices'> {
  const { type, maxLength = 0 } = schema
  if (schema.enum !== undefined) return { kind: 'choice', choices: schema.enum }
  if (type === 'boolean') return { kind: 'choice', choices: ['true', 'false'] }
  if (type === 'integer' || type === 'number') return { kind: 'number', choices: [] }
  if (type !== 'string') return { kind: 'json', choices: [] }
  return { kind: maxLength > LONG_TEXT || LINES.includes(name) ? 'lines' : 'text', choices: [] }
}

/**
 * Returns the arguments of a call from what was typed, by their names. What is empty is left out.
 *
 * @throws FieldError if a number or JSON is none
 */
export function argumentsOf(
  fields: readonly ToolField[],
  { inputSchema }: Tool,
  values: Readonly<Record<string, string>>,
): Record<string, unknown> {
  const properties = (inputSchema.properties ?? {}) as Record<string, FieldSchema>
  return Object.fromEntries(
    fields.flatMap((field): [string, unknown][] => {
      const value = values[field.name] ?? ''
      if (value === '') return []
      const isBoolean = properties[field.name]?.type === 'boolean'
      return [[field.name, isBoolean ? value === 'true' : sentValue(field, value)]]
    }),
  )
}

function sentValue({ name, kind }: ToolField, value: string): unknown {
  if (kind === 'json') return jsonOf(name, value)
  if (kind !== 'number') return value
  const number = Number(value)
  if (Number.isNaN(number)) throw new FieldError(name, 'This is not a number.')
  return number
}

/**
 * Reads JSON that a person typed into a field.
 *
 * @throws FieldError
 */
export function jsonOf(field: string, text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (error) {
    throw new FieldError(field, `This is not JSON: ${(error as Error).message}`)
  }
}
