import type { OpenApiDocument, OperationObject, Paths } from './model.ts'

/** The address of an instance that was started without options. Generators of clients need one. */
const LOCAL: OpenApiDocument['servers'] = [
  { url: 'http://127.0.0.1:4747', description: 'An instance on this machine' },
]

/** Returns a document for readers that have not got it from an instance. */
export const printed = (document: OpenApiDocument): OpenApiDocument => ({ ...document, servers: LOCAL })

/**
 * Merges the documents of the API and of the control API into one from which clients are generated. Operations of the control API
 * name their credential, and tags of their own. WebSockets are left out: clients of HTTP cannot call them.
 *
 * @param api has the named shapes of both
 * @param control with ids that the API does not have
 */
export function mergedDocument(api: OpenApiDocument, control: OpenApiDocument): OpenApiDocument {
  const both = <Part extends keyof OpenApiDocument['components']>(part: Part) => ({
    ...control.components[part],
    ...api.components[part],
  })
  return printed({
    ...api,
    info: {
      ...api.info,
      description: `${api.info.description}\n\n# Control API\n\n${control.info.description}`,
    },
    tags: [
      ...api.tags,
      ...control.tags.map(({ name, description }) => ({ name: controlTag(name), description })),
    ],
    paths: {
      ...calls(api.paths, (operation) => operation),
      ...calls(control.paths, (operation) => ({
        ...operation,
        tags: operation.tags.map(controlTag),
        security: operation.security ?? control.security,
      })),
    },
    components: {
      securitySchemes: both('securitySchemes'),
      parameters: both('parameters'),
      headers: both('headers'),
      schemas: withoutConditions(api.components.schemas) as OpenApiDocument['components']['schemas'],
    },
  })
}

/**
 * Returns schemas by name, or a part of one, without `not`: no language has a type for what a value is not, but generators make
 * numbered classes of its parts.
 *
 * @param isNamed whether the names of a value's fields are not keywords
 */
function withoutConditions(value: unknown, isNamed = true): unknown {
  if (Array.isArray(value)) return value.map((one) => withoutConditions(one, false))
  if (typeof value !== 'object' || value === null) return value
  const kept = Object.entries(value).filter(([key]) => isNamed || key !== 'not')
  return Object.fromEntries(
    kept.map(([key, one]) => [key, withoutConditions(one, !isNamed && key === 'properties')]),
  )
}

const controlTag = (name: string): string => `Control: ${name}`

/** Returns the paths with what a function makes of each operation, without WebSockets. */
function calls(paths: Paths, convert: (operation: OperationObject) => OperationObject): Paths {
  const kept = Object.entries(paths).map(([path, methods]) => [
    path,
    Object.fromEntries(
      Object.entries(methods).flatMap(([method, operation]) =>
        operation['x-websocket'] ? [] : [[method, convert(operation)]],
      ),
    ),
  ])
  return Object.fromEntries(kept.filter(([, methods]) => Object.keys(methods as object).length > 0))
}
