/** A JSON Schema (draft 2020-12) as OpenAPI 3.1 embeds it. */
export interface Schema {
  [keyword: string]: unknown
}

/** One representation of a body. */
export interface MediaType {
  schema: Schema
  example?: unknown
  /** Encoding of a form's fields that are no text. */
  encoding?: Record<string, { contentType: string }>
}

/** A reference to a component. */
export interface Reference {
  $ref: string
}

/** A parameter in the path, the query or the headers. */
export interface Parameter {
  name: string
  in: 'path' | 'query' | 'header'
  required?: boolean
  description?: string
  schema: Schema
}

/** A header of a response. */
export interface Header {
  description: string
  schema: Schema
}

/** The response with one status. */
export interface ResponseObject {
  description: string
  headers?: Record<string, Header | Reference>
  content?: Record<string, MediaType>
}

/** An operation of a path. */
export interface OperationObject {
  operationId: string
  summary: string
  description?: string
  tags: string[]
  /** Missing for the document's default; empty if no credential is needed. */
  security?: Record<string, string[]>[]
  parameters?: (Parameter | Reference)[]
  requestBody?: { required: boolean; description?: string; content: Record<string, MediaType> }
  responses: Record<string, ResponseObject>
  /** Whether it is a WebSocket and nothing else, which clients of HTTP cannot call. */
  'x-websocket'?: true
}

/** Path → method in lower case → operation. */
export type Paths = Record<string, Record<string, OperationObject>>

/** An OpenAPI 3.1 document. */
export interface OpenApiDocument {
  openapi: string
  info: {
    title: string
    version: string
    description: string
    contact: { name: string }
    license: { name: string; identifier: string }
  }
  servers: { url: string; description: string }[]
  security: Record<string, string[]>[]
  tags: { name: string; description: string }[]
  paths: Paths
  /** Requests to subscribers, by event. */
  webhooks?: Paths
  components: {
    securitySchemes: Record<string, object>
    parameters: Record<string, Parameter>
    headers: Record<string, Header>
    schemas: Record<string, Schema>
  }
}
