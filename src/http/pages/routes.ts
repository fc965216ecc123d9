import { Elysia } from 'elysia'
import { isUnchanged } from '../etag.ts'
import { ASSETS } from './assets.ts'

/** Serves the stylesheet and the mark of all pages. Browsers keep them. */
export const pageAssetRoutes = () => {
  const routes = new Elysia({ name: 'berth/pages' })
  for (const { path, type, content, etag } of ASSETS) {
    const headers = {
      'content-type': type,
      'cache-control': 'public, max-age=31536000, immutable',
      etag,
      'x-content-type-options': 'nosniff',
    }
    routes.get(
      path,
      ({ request }) =>
        isUnchanged(request, etag)
          ? new Response(null, { status: 304, headers })
          : new Response(content, { headers }),
      { detail: { hide: true } },
    )
  }
  return routes
}
