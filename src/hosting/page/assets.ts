/** The scripts and styles that a page loads, and what its relative links begin with. */
export interface PageAssets {
  /** Its address, or that of its `<base href>`. */
  readonly base: URL
  /** In their order, each once; those of other origins included. */
  readonly assets: readonly PageAsset[]
}

/** A script or a style that a page loads. */
export interface PageAsset {
  readonly kind: 'script' | 'style'
  readonly url: URL
}

/** Largest number of scripts and styles of a page that are looked at. @bound peer */
const MAX_ASSETS = 200

/**
 * Returns the scripts and styles that the markup of a page names. What its scripts load is not known.
 *
 * @param address the page's own address
 */
export function assetsOf(page: string, address: string): PageAssets {
  let base = new URL(address)
  let hasBase = false
  const named: { kind: PageAsset['kind']; reference: string }[] = []
  const rewriter = new HTMLRewriter().on('base, script, link', {
    element(element) {
      const reference = element.getAttribute(element.tagName === 'script' ? 'src' : 'href')
      if (reference === null) return
      if (element.tagName === 'base') {
        const url = hasBase ? null : urlOf(reference, base)
        if (url !== null) base = url
        hasBase ||= url !== null
        return
      }
      const kind = element.tagName === 'script' ? 'script' : kindOfLink(element)
      if (kind !== null && named.length < MAX_ASSETS) named.push({ kind, reference })
    },
  })
  try {
    rewriter.transform(page)
  } catch {
    // Markup that cannot be read. What was read before counts.
  }
  const assets = new Map<string, PageAsset>()
  for (const { kind, reference } of named) {
    const url = urlOf(reference, base)
    if (url !== null && !assets.has(url.href)) assets.set(url.href, { kind, url })
  }
  return { base, assets: [...assets.values()] }
}

/** Returns what a `<link>` loads; null for anything but a script or a style. */
function kindOfLink(link: HTMLRewriterTypes.Element): PageAsset['kind'] | null {
  const relations = (link.getAttribute('rel') ?? '').toLowerCase().split(/\s+/)
  if (relations.includes('alternate')) return null
  if (relations.includes('stylesheet')) return 'style'
  if (relations.includes('modulepreload')) return 'script'
  if (!relations.includes('preload')) return null
  const as = link.getAttribute('as')?.toLowerCase()
  return as === 'script' || as === 'style' ? as : null
}

/** Returns what a reference names, as HTTP; null for anything else. */
function urlOf(reference: string, base: URL): URL | null {
  const url = URL.parse(reference.replaceAll('&amp;', '&'), base.href)
  return url?.protocol === 'http:' || url?.protocol === 'https:' ? url : null
}
