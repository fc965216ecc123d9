import { Elysia } from 'elysia'
import { isUnchanged } from '../etag.ts'

/**
 * `GET /docs`: the API reference for people, made of `/openapi.json` by Scalar, which is part of the
 * executable. Nothing is fetched from elsewhere.
 */
export function docsRoutes() {
  let loaded: Promise<import('./page.ts').DocsPage> | undefined
  const load = () => {
    loaded ??= import('./page.ts').then(({ loadDocsPage }) => loadDocsPage())
    return loaded
  }
  const hidden = { detail: { hide: true } }
  const page = new Elysia({ prefix: '/docs' })
    .get(
      '',
      async () => {
        const { html, contentSecurityPolicy } = await load()
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
      hidden,
    )
    .get(
      '/scalar.js',
      async ({ request }) => {
        const { script, scriptEtag } = await load()
        const headers = {
          'content-type': 'text/javascript; charset=utf-8',
          // The page asks for it with its version, so that a new berth is never shown by an old script.
          'cache-control': 'public, max-age=31536000, immutable',
          etag: scriptEtag,
          'x-content-type-options': 'nosniff',
        }
        if (isUnchanged(request, scriptEtag)) return new Response(null, { status: 304, headers })
        return new Response(script, { headers })
      },
      hidden,
    )
  return new Elysia({ name: 'berth/docs' })
    .use(page)
    .get('/', () => new Response(null, { status: 302, headers: { location: '/docs' } }), hidden)
}
