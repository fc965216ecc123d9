/** The parts of a JSON Schema that tell where secrets stand. */
interface Schema {
  readonly properties?: Readonly<Record<string, Schema>>
  readonly patternProperties?: Readonly<Record<string, Schema>>
  readonly items?: Schema
  readonly anyOf?: readonly Schema[]
  readonly writeOnly?: boolean
}

/** A field of a body, as far as the operation's shape knows it. */
export interface Field {
  readonly shape: Shape
  /** Whether it has a place of its own, unlike a name among any. */
  readonly isNamed: boolean
}

/** What a body may look like, by the schema of its operation: where in it secrets stand. */
export class Shape {
  readonly #schemas: readonly Schema[]

  constructor(...schemas: readonly Schema[]) {
    this.#schemas = schemas.flatMap(alternatives)
  }

  /** Whether a value here never comes back (JSON Schema, validation, 9.4). */
  get isSecret(): boolean {
    return this.#schemas.some(({ writeOnly }) => writeOnly === true)
  }

  /** Whether anything in it never comes back. */
  get holdsSecrets(): boolean {
    return (
      this.isSecret ||
      this.#schemas.some((schema) => parts(schema).some((part) => new Shape(part).holdsSecrets))
    )
  }

  /** The field of this name; null where nothing reads one. */
  field(name: string): Field | null {
    const named = this.#schemas.flatMap(({ properties = {} }) =>
      Object.hasOwn(properties, name) ? [properties[name] as Schema] : [],
    )
    if (named.length > 0) return { shape: new Shape(...named), isNamed: true }
    const any = this.#schemas.flatMap(({ patternProperties = {} }) => Object.values(patternProperties))
    return any.length > 0 ? { shape: new Shape(...any), isNamed: false } : null
  }

  /** What stands in an array of this shape. */
  get item(): Shape {
    return new Shape(...this.#schemas.flatMap(({ items }) => (items ? [items] : [])))
  }
}

/** A schema and its alternatives, what is said of all of them included. */
const alternatives = (schema: Schema): Schema[] => [schema, ...(schema.anyOf ?? []).flatMap(alternatives)]

const parts = ({ properties = {}, patternProperties = {}, items }: Schema): Schema[] => [
  ...Object.values(properties),
  ...Object.values(patternProperties),
  ...(items ? [items] : []),
]
