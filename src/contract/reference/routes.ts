import { type AnyElysia, Elysia } from 'elysia'
import { type Asset, asset } from '../../http/pages/assets.ts'
import { assetRoutes } from '../../http/pages/routes.ts'
import { refuseBadQuery } from '../../http/request-checks.ts'
import { once } from '../../runtime/once.ts'
import type { DocumentFacts } from '../openapi/facts.ts'
import style from './browser/reference.css' with { type: 'text' }
import script from './browser/reference.js' with { type: 'text' }
import type { ReferencePage, Viewer } from './page.ts'

/** Returns the command lines that call each operation, by its id. */
export type OperationCommands = () => Promise<ReadonlyMap<string, string>>

/** An API to describe on a page. */
export interface DescribedApi extends Pick<ReferencePage, 'path' | 'title' | 'document' | 'credential'> {
  /** Called at the first request. */
  app(): AnyElysia | Promise<AnyElysia>
  readonly facts: DocumentFacts
  readonly commands: OperationCommands
  /** Returns the address to which a request was sent. */
  origin(request: Request): string
  /** Returns what the page has for the browser that asks; null for a browser that is not signed in. */
  viewer?(request: Request): Promise<Viewer | null>
}

const SCRIPT: Asset = asset('/docs/reference.js', 'text/javascript; charset=utf-8', script)
const STYLE: Asset = asset('/docs/reference.css', 'text/css; charset=utf-8', style)

/** Serves what the pages of all references load. */
export const referenceAssetRoutes = () => assetRoutes('berth/reference', [SCRIPT, STYLE])

/**
 * Serves the reference of an API as a page, without a credential. It is built at the first request: routes never
 * change. With `?q=WORDS` it has only the operations with these words, for browsers that run no scripts.
 */
export function referenceRoutes(api: DescribedApi) {
  const load = once(async () => {
    const [{ openApiDocument }, { describedOperations }, { referenceOf }, pages, { compressed }] =
      await Promise.all([
        import('../openapi/document.ts'),
        import('../operation.ts'),
        import('./reference.ts'),
        import('./page.ts'),
        import('../../http/compressed.ts'),
      ])
    const app = await api.app()
    const document = openApiDocument(app, api.facts)
    const reference = referenceOf(document, describedOperations(app), api.facts.tags, await api.commands())
    return { ...pages, compressed, reference, whole: pages.render(reference) }
  })
  const page: ReferencePage = { ...api, script: SCRIPT.url, style: STYLE.url }
  return new Elysia({ name: `berth${api.path}` }).onBeforeHandle(refuseBadQuery).get(
    api.path,
    async ({ request }) => {
      const { reference, whole, narrowed, render, referencePage, compressed } = await load()
      const sought = new URL(request.url).searchParams.get('q')?.trim() ?? ''
      const shown = sought === '' ? whole : render(narrowed(reference, sought), sought)
      const viewer = (await api.viewer?.(request)) ?? null
      const response = referencePage(page, shown, viewer, api.origin(request))
      // A narrowed page has the words of the request, beside the token of the session.
      return sought === '' ? compressed(request, response) : response
    },
    { detail: { hide: true } },
  )
}
