import { etagOf } from '../etag.ts'
import mark from './mark.svg' with { type: 'text' }
import style from './style.css' with { type: 'text' }
import tokens from './tokens.css' with { type: 'text' }

/** The stylesheet of all pages: the tokens, then the rules. */
export const STYLESHEET = `${tokens}${style}`

/** Berth's mark as an element of a page, whose stylesheet colours it. */
export const MARK_ELEMENT = mark
  .replace(/<(style|title)>[\s\S]*?<\/\1>\s*/g, '')
  .replace('<svg', '<svg class="logo" width="20" height="20" aria-hidden="true"')

/** Berth's mark as a URL that contains the drawing, for pages that load nothing. */
export const MARK_DATA_URL = `data:image/svg+xml,${encodeURIComponent(mark)}`

/** A file that pages load. */
export interface Asset {
  readonly path: string
  readonly type: string
  readonly content: string
  readonly etag: string
  /** Path with the version of the content, so pages of a new berth never use an old file. */
  readonly url: string
}

/** Makes a file that pages load. */
export const asset = (path: string, type: string, content: string): Asset => {
  const etag = etagOf(content)
  return { path, type, content, etag, url: `${path}?v=${JSON.parse(etag) as string}` }
}

const STYLE = asset('/pages/style.css', 'text/css; charset=utf-8', STYLESHEET)
const MARK = asset('/pages/mark.svg', 'image/svg+xml', mark)

/** The files that pages load. */
export const ASSETS: readonly Asset[] = [STYLE, MARK]

/** The URL of the stylesheet. */
export const STYLE_URL = STYLE.url

/** The URL of berth's mark, the icon of all pages. */
export const MARK_URL = MARK.url
