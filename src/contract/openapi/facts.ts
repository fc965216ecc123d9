import type { ErrorStatus } from '../operation.ts'
import type { OpenApiDocument, Parameter, Paths } from './model.ts'
import type { SharedSchemas } from './schemas.ts'

/** What decides what an operation has beside what its route declares. */
export interface OperationTraits {
  /** In lower case. */
  method: string
  /** It takes the credential that holds where none is named. */
  usualCredential: boolean
  /** It takes a body. */
  body: boolean
  /** It takes a body or a query. */
  input: boolean
}

/** What an operation has beside what its route declares. */
export interface Added {
  /** Names of shared parameters. */
  parameters: readonly string[]
  failures: readonly ErrorStatus[]
}

/** What a document says of an API beside its operations. */
export interface DocumentFacts {
  info: OpenApiDocument['info']
  /** How a caller may prove itself, by the name that operations refer to. */
  securitySchemes: Readonly<Record<string, object>>
  /** The credential of every operation that does not name another. */
  security: Record<string, string[]>[]
  /** Groups of operations with their descriptions, in the order in which they are shown. */
  tags: Readonly<Record<string, string>>
  /** Parameters that several operations share. */
  parameters: Readonly<Record<string, Parameter>>
  /** What the statuses of failures mean. */
  failures: Readonly<Record<ErrorStatus, string>>
  added(operation: OperationTraits): Added
  /** What every event stream has in common beside what its operation says of it. */
  streams?: string
  /** The requests that are sent to others, where there are any. */
  webhooks?(schemas: SharedSchemas): Paths
}
