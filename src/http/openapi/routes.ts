import { type AnyElysia, Elysia } from 'elysia'
import { etagOf, isUnchanged } from '../etag.ts'

/**
 * `GET /openapi.json`: the API's own description, without a credential. It is made when first asked
 * for, and kept: the routes never change.
 *
 * @param app asked at the first request
 */
export function openApiRoutes(app: () => Promise<AnyElysia>) {
  let made: Promise<{ text: string; etag: string }> | undefined
  const make = async () => {
    const { openApiDocument } = await import('./document.ts')
    const text = JSON.stringify(openApiDocument(await app()))
    return { text, etag: etagOf(text) }
  }
  return new Elysia({ name: 'berth/openapi' }).get(
    '/openapi.json',
    async ({ request }) => {
      made ??= make()
      const { text, etag } = await made
      const headers = { 'content-type': 'application/json', 'cache-control': 'no-cache', etag }
      if (isUnchanged(request, etag)) return new Response(null, { status: 304, headers })
      return new Response(text, { headers })
    },
    { detail: { hide: true } },
  )
}
