import { toOpenAPISchema } from '@elysiajs/openapi/openapi'
import type { AnyElysia } from 'elysia'
import { TAGS } from '../tags.ts'
import { DEFAULT_SECURITY, INFO, PARAMETERS, SECURITY_SCHEMES } from './info.ts'
import type { OpenApiDocument, Paths } from './model.ts'
import { completeOperation, type Generated } from './operations.ts'
import { SharedSchemas } from './schemas.ts'
import { describeWebhooks } from './webhooks.ts'

/** TypeBox's mark of an optional shape. */
const OPTIONAL = Symbol.for('TypeBox.Optional')

type Route = AnyElysia['routes'][number]

/**
 * The API as an OpenAPI 3.1 document, made from what the routes declare of themselves. Routes that
 * are hidden are left out. Takes milliseconds: callers keep the result.
 *
 * @throws Error where two different shapes have one name
 */
export function openApiDocument(app: AnyElysia): OpenApiDocument {
  const routes = app.routes.filter((route) => !route.hooks.detail?.hide)
  const bodies = new Map(routes.map((route) => [keyOf(route), route.hooks.body]))
  const schemas = new SharedSchemas()
  const paths: Paths = {}
  for (const [path, methods] of Object.entries(generatePaths(routes))) {
    paths[path] = Object.fromEntries(
      Object.entries(methods).map(([method, operation]) => {
        const body = bodies.get(`${method} ${path}`)
        return [method, completeOperation(method, operation, body?.[OPTIONAL] !== undefined, schemas)]
      }),
    )
  }
  const webhooks = describeWebhooks(schemas)
  return {
    openapi: '3.1.0',
    info: INFO,
    servers: [{ url: '/', description: 'This instance' }],
    security: DEFAULT_SECURITY,
    tags: usedTags(paths),
    paths,
    webhooks,
    components: {
      securitySchemes: usedSchemes(paths),
      parameters: PARAMETERS,
      schemas: schemas.toObject(),
    },
  }
}

/** The generator's paths, as plain JSON: without the validator's symbols, sharing nothing with the routes. */
function generatePaths(routes: Route[]): Record<string, Record<string, Generated>> {
  // Bodies are read by berth itself, which the generator cannot see; all of them are JSON.
  const declared = routes.map((route) => ({ ...route, hooks: { ...route.hooks, parse: [{ fn: 'json' }] } }))
  const described = { getGlobalRoutes: () => declared } as unknown as AnyElysia
  return JSON.parse(JSON.stringify(toOpenAPISchema(described, { staticFile: false }).paths))
}

/** `post /servers/{serverId}/exec` */
const keyOf = ({ method, path }: Route): string =>
  `${method.toLowerCase()} ${path.replaceAll(/:([^/]+)/g, '{$1}')}`

const operationsOf = (paths: Paths) => Object.values(paths).flatMap((methods) => Object.values(methods))

function usedTags(paths: Paths): OpenApiDocument['tags'] {
  const used = new Set(operationsOf(paths).flatMap(({ tags }) => tags))
  return Object.entries(TAGS)
    .filter(([name]) => used.has(name))
    .map(([name, description]) => ({ name, description }))
}

function usedSchemes(paths: Paths): Record<string, object> {
  const used = new Set(
    [...operationsOf(paths).map(({ security }) => security ?? []), DEFAULT_SECURITY]
      .flat()
      .flatMap((requirement) => Object.keys(requirement)),
  )
  return Object.fromEntries(Object.entries(SECURITY_SCHEMES).filter(([name]) => used.has(name)))
}
