import { type AnyElysia, Elysia } from 'elysia'
import { etagOf, isUnchanged } from '../../http/etag.ts'
import type { DocumentFacts } from './facts.ts'

/** A description that is served: of which app, where, and what it says beside the operations. */
export interface ServedDocument {
  /** Asked at the first request. */
  app(): AnyElysia | Promise<AnyElysia>
  path?: string
  facts: DocumentFacts
}

/**
 * `GET /openapi.json`, or another path: an API's own description, without a credential. It is made when
 * first asked for, and kept: the routes never change.
 */
export function openApiRoutes({ app, path = '/openapi.json', facts }: ServedDocument) {
  let made: Promise<{ text: string; etag: string }> | undefined
  const make = async () => {
    const { openApiDocument } = await import('./document.ts')
    const text = JSON.stringify(openApiDocument(await app(), facts))
    return { text, etag: etagOf(text) }
  }
  return new Elysia({ name: `berth${path}` }).get(
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
