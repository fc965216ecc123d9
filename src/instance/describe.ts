import type { AnyElysia } from 'elysia'
import type { OpenApiDocument } from '../contract/openapi/model.ts'
import { type ControlGroup, loadControlApi } from '../testing/testing.ts'
import { createApi } from './api.ts'

/**
 * Returns the API's OpenAPI document without a running instance: no database, no compute, no port.
 *
 * @throws Error if the routes contradict each other, which the tests rule out
 */
export async function describeApi(): Promise<OpenApiDocument> {
  const [{ openApiDocument }, { API_DOCUMENT }] = await Promise.all([
    import('../contract/openapi/document.ts'),
    import('../resources/openapi.ts'),
  ])
  return openApiDocument(await describedApp(), API_DOCUMENT)
}

/** Returns the control API's OpenAPI document, without a running instance. */
export async function describeControl(): Promise<OpenApiDocument> {
  const [{ openApiDocument }, { controlDocument }] = await Promise.all([
    import('../contract/openapi/document.ts'),
    loadControlApi(),
  ])
  return openApiDocument(await describedControl(), await controlDocument())
}

/** Returns one document of both APIs, without a running instance. */
export async function describeAll(): Promise<OpenApiDocument> {
  const [{ openApiDocument }, { SharedSchemas }, { mergedDocument }, { API_DOCUMENT }, { controlDocument }] =
    await Promise.all([
      import('../contract/openapi/document.ts'),
      import('../contract/openapi/schemas.ts'),
      import('../contract/openapi/merge.ts'),
      import('../resources/openapi.ts'),
      loadControlApi(),
    ])
  const { operationId: _, ...facts } = await controlDocument()
  const schemas = new SharedSchemas()
  const control = openApiDocument(await describedControl(), facts, schemas)
  return mergedDocument(openApiDocument(await describedApp(), API_DOCUMENT, schemas), control)
}

/** Returns the API's app with nothing behind it: its routes can be read, a request throws. */
export const describedApp = (): Promise<AnyElysia> =>
  createApi(
    absent(),
    new AbortController().signal,
    { bound: 'localhost', publicHost: null },
    async () => absent(),
    async () => new Map(),
  ).whole()

/** Returns the control API's app with nothing behind it, or the app of some of its groups of routes. */
export async function describedControl(groups?: readonly ControlGroup[]): Promise<AnyElysia> {
  const { createControlApi } = await loadControlApi()
  const api = createControlApi(absent())
  return groups === undefined ? api.whole() : api.mount(groups)
}

/** Returns a stand-in that mounting the routes may pass around, but that throws when called. */
function absent<Part extends object>(): Part {
  const anything: object = new Proxy(() => {}, {
    get: () => anything,
    apply() {
      throw new Error('This app only describes its routes: it has nothing to answer a request with.')
    },
  })
  return anything as Part
}
