import type { ErrorStatus } from '../operation.ts'
import type { TagFacts } from '../tags.ts'
import type { OpenApiDocument, Parameter, Paths } from './model.ts'
import type { SharedSchemas } from './schemas.ts'

/** Properties of an operation that determine its shared parameters and failures. */
interface OperationTraits {
  /** In lower case. */
  method: string
  /** Whether it takes the document's default credential. */
  usualCredential: boolean
  /** Whether it takes a body. */
  body: boolean
  /** Whether its body is a stream of bytes. */
  streamedBody: boolean
  /** Whether it takes a body or a query. */
  input: boolean
}

/** Parts of an operation in addition to its route's declaration. */
export interface Added {
  /** Names of shared parameters. */
  parameters: readonly string[]
  failures: readonly ErrorStatus[]
}

/** Content of a document in addition to its operations. */
export interface DocumentFacts {
  info: OpenApiDocument['info']
  /** Returns an operation's id in this document; without it, ids stay. */
  operationId?(id: string): string
  /** Authentication schemes, by the name that operations refer to. */
  securitySchemes: Readonly<Record<string, object>>
  /** Default credential of operations. */
  security: Record<string, string[]>[]
  /** Groups of operations, in display order. */
  tags: Readonly<Record<string, TagFacts>>
  /** Parameters that several operations share. */
  parameters: Readonly<Record<string, Parameter>>
  /** Descriptions of failures by status. */
  failures: Readonly<Record<ErrorStatus, string>>
  added(operation: OperationTraits): Added
  /** Description of all event streams, added to each operation's own. */
  streams?: string
  /** Returns the webhook requests, if there are any. */
  webhooks?(schemas: SharedSchemas): Paths
}
