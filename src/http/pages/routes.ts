import { Elysia } from 'elysia'
import { isUnchanged } from '../etag.ts'
import { ASSETS, type Asset } from './assets.ts'

/** Serves the stylesheet and the mark of all pages. */
export const pageAssetRoutes = () => assetRoutes('berth/pages', ASSETS)

/** Serves files that pages load. Browsers keep them. */
export function assetRoutes(name: string, assets: readonly Asset[]) {
  const routes = new Elysia({ name })
  for (const { path, type, content, etag } of assets) {
    const headers = {
      'content-type': type,
      'cache-control': 'public, max-age=31536000, immutable',
      etag,
      'x-content-type-options': 'nosniff',
    }
    routes.get(
      path,
      async ({ request }) => {
        if (isUnchanged(request, etag)) return new Response(null, { status: 304, headers })
        const { compressed } = await import('../compressed.ts')
        return compressed(request, new Response(content, { headers }))
      },
      { detail: { hide: true } },
    )
  }
  return routes
}
