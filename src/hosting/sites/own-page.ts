import { Html, html } from '../../http/pages/html.ts'
import { htmlDocument } from '../../http/pages/page.ts'
import css from '../../http/pages/style.css' with { type: 'text' }

/**
 * Builds a page of berth's own in place of a site's. It loads nothing, because a site's paths are not berth's.
 *
 * @param reload seconds after which a browser reloads it
 */
export function pageOf(title: string, body: Html, reload?: number): string {
  const again = reload === undefined ? null : html`<meta http-equiv="refresh" content="${reload}">`
  const style = html`${again}<style>${new Html(css)}</style>`
  return htmlDocument({ title, body, isNarrow: false, style, header: html`<span class="name">berth</span>` })
    .text
}
