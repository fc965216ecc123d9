import { type Html, html } from '../../http/pages/html.ts'
import { standaloneDocument } from '../../http/pages/page.ts'

/**
 * Builds a page of berth's own in place of a site's. It loads nothing, because a site's paths are not berth's.
 *
 * @param reload seconds after which a browser reloads it
 */
export function pageOf(title: string, body: Html, reload?: number): string {
  const head = reload !== undefined && html`<meta http-equiv="refresh" content="${reload}">`
  return standaloneDocument({ title, body, head }).text
}
