/** The parts of a JSON Schema that mark secrets. */
interface Schema {
  readonly properties?: Readonly<Record<string, Schema>>
  readonly patternProperties?: Readonly<Record<string, Schema>>
  readonly items?: Schema
  readonly anyOf?: readonly Schema[]
  readonly writeOnly?: boolean
}

/** A field of a body in the operation's schema. */
interface BodyField {
  readonly shape: BodySchema
  /** Whether the schema names it, unlike a field of a map. */
  readonly isNamed: boolean
}

/** Finds secrets in a body by the schema of its operation. */
export class BodySchema {
  readonly #schemas: readonly Schema[]

  constructor(...schemas: readonly Schema[]) {
    this.#schemas = schemas.flatMap(alternatives)
  }

  /** Whether the value is write-only (JSON Schema, validation, 9.4). */
  get isSecret(): boolean {
    return this.#schemas.some(({ writeOnly }) => writeOnly === true)
  }

  /** Whether anything in it is write-only. */
  get holdsSecrets(): boolean {
    return (
      this.isSecret ||
      this.#schemas.some((schema) => parts(schema).some((part) => new BodySchema(part).holdsSecrets))
    )
  }

  /** Returns a field by its name; null if the schema has none. */
  field(name: string): BodyField | null {
    const named = this.#schemas.flatMap(({ properties = {} }) =>
      Object.hasOwn(properties, name) ? [properties[name] as Schema] : [],
    )
    if (named.length > 0) return { shape: new BodySchema(...named), isNamed: true }
    const any = this.#schemas.flatMap(({ patternProperties = {} }) => Object.values(patternProperties))
    return any.length > 0 ? { shape: new BodySchema(...any), isNamed: false } : null
  }

  /** The schema of an array's items. */
  get item(): BodySchema {
    return new BodySchema(...this.#schemas.flatMap(({ items }) => (items ? [items] : [])))
  }
}

/** Returns a schema and its alternatives, including those of `allOf`. */
const alternatives = (schema: Schema): Schema[] => [schema, ...(schema.anyOf ?? []).flatMap(alternatives)]

const parts = ({ properties = {}, patternProperties = {}, items }: Schema): Schema[] => [
  ...Object.values(properties),
  ...Object.values(patternProperties),
  ...(items ? [items] : []),
]
