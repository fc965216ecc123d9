import { Elysia } from 'elysia'
import { once } from '../../runtime/once.ts'
import { isUnchanged } from '../etag.ts'
import type { Shown } from './page.ts'

const HIDDEN = { detail: { hide: true } }

const API: Shown = { title: 'berth', document: '/openapi.json', securityScheme: 'apiKey' }

/** Returns a function that loads the viewer's script, and what writes pages around it, at its first call. */
const viewerLoader = () =>
  once(async () => {
    const page = await import('./page.ts')
    return { ...page, loaded: await page.loadViewer() }
  })

/**
 * `GET /docs`: the API reference for people, made of `/openapi.json` by Scalar, which is part of the
 * executable. Nothing is fetched from elsewhere.
 */
export const docsRoutes = () => {
  const viewer = viewerLoader()
  return new Elysia({ name: 'berth/docs' }).use(docsPageRoute('/docs', API, viewer)).get(
    '/docs/scalar.js',
    async ({ request }) => {
      const { script, etag } = (await viewer()).loaded
      const headers = {
        'content-type': 'text/javascript; charset=utf-8',
        // The page asks for it with its version, so that a new berth is never shown by an old script.
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

/** One page of the viewer; its script is that of `docsRoutes`. */
export const docsPageRoute = (path: string, shown: Shown, viewer = viewerLoader()) =>
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
