import { Elysia } from 'elysia'
import { once } from '../../runtime/once.ts'
import { isUnchanged } from '../etag.ts'
import { pageAssetRoutes } from '../pages/routes.ts'
import { guideRoutes } from './guide/routes.ts'
import type { DocsPageOptions } from './page.ts'

const HIDDEN = { detail: { hide: true } }

const API: DocsPageOptions = { title: 'berth', document: '/openapi.json', securityScheme: 'apiKey' }

/** Returns a function that loads the script and the renderer of pages on its first call. */
const viewerLoader = () =>
  once(async () => {
    const page = await import('./page.ts')
    return { ...page, loaded: await page.loadViewer() }
  })

/**
 * Serves `GET /docs`, the API reference for people, the guide, and the files that all pages load. Scalar renders the reference from
 * `/openapi.json`. Scalar is part of the executable, and nothing is fetched from elsewhere.
 */
export const docsRoutes = () => {
  const viewer = viewerLoader()
  return new Elysia({ name: 'berth/docs' })
    .use(docsPageRoute('/docs', API, viewer))
    .use(guideRoutes())
    .use(pageAssetRoutes())
    .get(
      '/docs/scalar.js',
      async ({ request }) => {
        const { script, etag } = (await viewer()).loaded
        const headers = {
          'content-type': 'text/javascript; charset=utf-8',
          // The page's URL of the script contains its version, so a new berth never runs an old script.
          'cache-control': 'public, max-age=31536000, immutable',
          etag,
          'x-content-type-options': 'nosniff',
        }
        if (isUnchanged(request, etag)) return new Response(null, { status: 304, headers })
        return new Response(script, { headers })
      },
      HIDDEN,
    )
}

/** Serves a page of the viewer. `docsRoutes` serves its script. */
export const docsPageRoute = (path: string, shown: DocsPageOptions, viewer = viewerLoader()) =>
  new Elysia({ name: `berth${path}` }).get(
    path,
    async () => {
      const { docsPage, loaded } = await viewer()
      const { html, contentSecurityPolicy } = docsPage(shown, loaded)
      return new Response(html, {
        headers: {
          'content-type': 'text/html; charset=utf-8',
          'cache-control': 'no-cache',
          'content-security-policy': contentSecurityPolicy,
          'referrer-policy': 'no-referrer',
          'x-content-type-options': 'nosniff',
        },
      })
    },
    HIDDEN,
  )
