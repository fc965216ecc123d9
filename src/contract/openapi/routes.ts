import { type AnyElysia, Elysia } from 'elysia'
import { etagOf, isUnchanged } from '../../http/etag.ts'
import { refuseBadQuery } from '../../http/request-checks.ts'
import type { DocumentFacts } from './facts.ts'

/** An OpenAPI document to serve: its app, path and facts. */
interface ServedDocument {
  /** Called at the first request. */
  app(): AnyElysia | Promise<AnyElysia>
  path?: string
  facts: DocumentFacts
}

/**
 * Serves an API's document at `GET /openapi.json`, or another path, without a credential. Builds it once, at the
 * first request: routes never change.
 */
export function openApiRoutes({ app, path = '/openapi.json', facts }: ServedDocument) {
  let made: Promise<{ text: string; etag: string }> | undefined
  const make = async () => {
    const { openApiDocument } = await import('./document.ts')
    const text = JSON.stringify(openApiDocument(await app(), facts))
    return { text, etag: etagOf(text) }
  }
  return new Elysia({ name: `berth${path}` }).onBeforeHandle(refuseBadQuery).get(
    path,
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
