import { toOpenAPISchema } from '@elysiajs/openapi/openapi'
import type { TSchema } from '@sinclair/typebox'
import type { AnyElysia } from 'elysia'
import { isOptionalBody, shapeOf } from '../request.ts'
import { responseShapeOf } from '../response.ts'
import { Examples } from './examples.ts'
import type { DocumentFacts } from './facts.ts'
import type { OpenApiDocument, Paths } from './model.ts'
import { completeOperation, type Generated, HEADERS } from './operations.ts'
import { SharedSchemas } from './schemas.ts'

type Route = AnyElysia['routes'][number]

/**
 * Builds the OpenAPI 3.1 document of an API from the declarations of its routes, except hidden ones. Takes
 * milliseconds, so callers keep the result.
 *
 * @param facts content in addition to the operations
 * @param schemas gets the named shapes; documents to be merged share one
 * @throws Error if two different shapes have one name
 */
export function openApiDocument(
  app: AnyElysia,
  facts: DocumentFacts,
  schemas = new SharedSchemas(),
): OpenApiDocument {
  const routes = app.routes.filter((route) => !route.hooks.detail?.hide)
  const bodies = new Map(routes.map((route) => [keyOf(route), shapeOf(route.hooks.body)]))
  const paths: Paths = {}
  for (const [path, methods] of Object.entries(generatePaths(routes, schemas))) {
    paths[path] = Object.fromEntries(
      Object.entries(methods).map(([method, operation]) => {
        const body = bodies.get(`${method} ${path}`)
        const bodyOptional = body !== undefined && isOptionalBody(body)
        return [method, completeOperation(method, path, operation, bodyOptional, facts, schemas)]
      }),
    )
  }
  const webhooks = facts.webhooks?.(schemas)
  const shapes = schemas.toObject()
  addExamples(paths, new Examples(shapes))
  for (const operation of operationsOf(paths))
    operation.operationId = facts.operationId?.(operation.operationId) ?? operation.operationId
  return {
    openapi: '3.1.0',
    info: facts.info,
    servers: [{ url: '/', description: 'This instance' }],
    security: facts.security,
    tags: usedTags({ ...paths, ...webhooks }, facts),
    paths,
    ...(webhooks ? { webhooks } : {}),
    components: {
      securitySchemes: usedSchemes(paths, facts),
      parameters: { ...facts.parameters },
      headers: usedHeaders(paths),
      schemas: shapes,
    },
  }
}

/** Returns the generator's paths as plain JSON, without the validator's symbols and independent of the routes. */
function generatePaths(routes: Route[], schemas: SharedSchemas): Record<string, Record<string, Generated>> {
  // Berth reads and checks bodies itself, where the generator cannot see it. All are JSON.
  const declared = routes.map((route) => {
    const { body, query, params, response, ...hooks } = route.hooks
    // The generator would merge a name and null into one schema, so it gets references.
    const shared = (shape: TSchema | undefined) => shape && (schemas.shareNested(shape) as unknown as TSchema)
    const shapes = {
      body: shared(shapeOf(body)),
      query: shared(shapeOf(query)),
      params: shared(shapeOf(params)),
      response: responseShapes(response, shared),
    }
    return { ...route, hooks: { ...hooks, ...shapes, parse: [{ fn: 'json' }] } }
  })
  // The generator asks an app for its routes and for nothing else.
  const described = { getGlobalRoutes: () => declared } as unknown as AnyElysia
  return JSON.parse(JSON.stringify(toOpenAPISchema(described, { staticFile: false }).paths))
}

/** Returns the shapes of checked responses by status. */
const responseShapes = (
  responses: Record<string, TSchema> = {},
  shared: (shape: TSchema) => TSchema | undefined,
): Record<string, TSchema | undefined> =>
  Object.fromEntries(Object.entries(responses).map(([status, one]) => [status, shared(responseShapeOf(one))]))

/** Adds an example to each JSON body of requests and successful responses. */
function addExamples(paths: Paths, examples: Examples): void {
  for (const { operationId, requestBody, responses } of operationsOf(paths)) {
    const successes = Object.entries(responses).flatMap(([status, one]) => (status < '300' ? [one] : []))
    for (const { content } of [...(requestBody ? [requestBody] : []), ...successes]) {
      const json = content?.['application/json']
      if (json) json.example = examples.of(json.schema, operationId)
    }
  }
}

/** Returns the key of a route: `post /servers/{serverId}/exec`. */
const keyOf = ({ method, path }: Route): string =>
  `${method.toLowerCase()} ${path.replaceAll(/:([^/]+)/g, '{$1}')}`

const operationsOf = (paths: Paths) => Object.values(paths).flatMap((methods) => Object.values(methods))

function usedTags(paths: Paths, facts: DocumentFacts): OpenApiDocument['tags'] {
  const used = new Set(operationsOf(paths).flatMap(({ tags }) => tags))
  return Object.entries(facts.tags)
    .filter(([name]) => used.has(name))
    .map(([name, { description }]) => ({ name, description }))
}

function usedHeaders(paths: Paths): OpenApiDocument['components']['headers'] {
  const responses = operationsOf(paths).flatMap((operation) => Object.values(operation.responses))
  const used = new Set(responses.flatMap(({ headers = {} }) => Object.keys(headers)))
  return Object.fromEntries(Object.entries(HEADERS).filter(([name]) => used.has(name)))
}

function usedSchemes(paths: Paths, facts: DocumentFacts): Record<string, object> {
  const used = new Set(
    [...operationsOf(paths).map(({ security }) => security ?? []), facts.security]
      .flat()
      .flatMap((requirement) => Object.keys(requirement)),
  )
  return Object.fromEntries(Object.entries(facts.securitySchemes).filter(([name]) => used.has(name)))
}
