import type { AnyElysia } from 'elysia'
import { createApi } from './app.ts'
import type { OpenApiDocument } from './http/openapi/model.ts'
import type { Services } from './services.ts'

/**
 * The API's OpenAPI document without a running instance: no database, no compute, no port.
 *
 * @throws Error where the routes contradict each other, which the tests rule out
 */
export async function describeApi(): Promise<OpenApiDocument> {
  const { openApiDocument } = await import('./http/openapi/document.ts')
  return openApiDocument(await describedApp())
}

/** The app with nothing behind it: its routes can be read, a request throws. */
export const describedApp = (): Promise<AnyElysia> =>
  createApi(absentServices(), { bound: 'localhost', publicHost: null }).whole()

/** Services that mounting the routes can pass around and that nothing can use. */
function absentServices(): Services {
  const absent: object = new Proxy(() => {}, {
    get: () => absent,
    apply() {
      throw new Error('This app only describes its routes: it has nothing to answer a request with.')
    },
  })
  return absent as Services
}
