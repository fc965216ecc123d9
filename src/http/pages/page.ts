import { etagOf, isUnchanged } from '../etag.ts'
import { type Html, html, type Part } from './html.ts'
import css from './style.css' with { type: 'text' }

/** The path of the stylesheet. */
export const STYLE_PATH = '/pages/style.css'

const etag = etagOf(css)

/** A page. */
export interface Page {
  title: string
  body: Part
  status?: number
  /** Content of the header, after berth's name. */
  header?: Part
  /** Narrows the page. For forms and messages, which are hard to read in long lines. */
  isNarrow?: boolean
  /** Targets of its forms in addition to the instance, as sources of the policy. Redirects count. */
  formTargets?: readonly string[]
  headers?: Readonly<Record<string, string>>
}

/**
 * Builds a document.
 *
 * @param style HTML for its head that loads its styles
 */
export function htmlDocument({
  title,
  style,
  header,
  body,
  isNarrow,
}: Pick<Page, 'title' | 'header' | 'body' | 'isNarrow'> & { style: Html }): Html {
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title} · berth</title>
<link rel="icon" href="data:,">
${style}
</head>
<body>
<header><div>${header}</div></header>
<main${isNarrow && html` class="narrow"`}>
<h1>${title}</h1>
${body}
</main>
</body>
</html>
`
}

/** Makes the response with a page. The page loads only the stylesheet, runs no script, and cannot be framed. */
export function pageResponse(page: Page): Response {
  const { title, body, status = 200, header, isNarrow = false, formTargets = [], headers } = page
  const document = htmlDocument({
    title,
    body,
    isNarrow,
    style: html`<link rel="stylesheet" href="${STYLE_PATH}?v=${JSON.parse(etag) as string}">`,
    header: html`<a class="name" href="/">berth</a>${header}`,
  })
  return new Response(document.text, {
    status,
    headers: {
      'content-type': 'text/html; charset=utf-8',
      ...securityHeaders(formTargets),
      ...headers,
    },
  })
}

/** Returns headers that keep a page from being stored, framed, or read as another type. */
const securityHeaders = (formTargets: readonly string[]): Record<string, string> => ({
  'cache-control': 'no-store',
  'content-security-policy': [
    "default-src 'none'",
    "style-src 'self'",
    'img-src data:',
    // Chromium checks redirects after a form too.
    `form-action ${["'self'", ...formTargets].join(' ')}`,
    "base-uri 'none'",
    "frame-ancestors 'none'",
  ].join('; '),
  'x-frame-options': 'DENY',
  'cross-origin-resource-policy': 'same-origin',
  // With `no-referrer` browsers would send `Origin: null` with berth's own forms.
  'referrer-policy': 'same-origin',
  'x-content-type-options': 'nosniff',
})

/** Redirects the browser. After a form the next request is a GET (RFC 9110, 15.4.4). */
export const redirectResponse = (
  location: string,
  headers: Readonly<Record<string, string>> = {},
): Response =>
  new Response(null, {
    status: 303,
    headers: { location, 'cache-control': 'no-store', 'referrer-policy': 'same-origin', ...headers },
  })

/** Serves the stylesheet. Its URL contains a version, so pages of a new berth never use an old stylesheet. */
export function styleResponse(request: Request): Response {
  const headers = {
    'content-type': 'text/css; charset=utf-8',
    'cache-control': 'public, max-age=31536000, immutable',
    etag,
    'x-content-type-options': 'nosniff',
  }
  return isUnchanged(request, etag)
    ? new Response(null, { status: 304, headers })
    : new Response(css, { headers })
}
