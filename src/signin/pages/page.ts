import { etagOf, isUnchanged } from '../../http/etag.ts'
import { type Html, html, type Part } from './html.ts'
import css from './style.css' with { type: 'text' }

/** Where the stylesheet is served. */
export const STYLE_PATH = '/signin/style.css'

const etag = etagOf(css)

/** A page. */
export interface Page {
  title: string
  body: Part
  status?: number
  /** What stands in the header beside berth's name: who is signed in, and the way out. */
  header?: Part
  /** Whether it holds a form or a message alone, which long lines would make no clearer. */
  isNarrow?: boolean
  /** Where its forms may lead to beside the instance itself, as sources of the policy: redirects count. */
  formTargets?: readonly string[]
  headers?: Readonly<Record<string, string>>
}

/** Writes a page. @param style what gives it its look, as HTML for its head */
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

/** Answers with a page. It loads the stylesheet and nothing else, runs no script, and stands in no frame. */
export function pageAnswer(page: Page): Response {
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
      ...guarding(formTargets),
      ...headers,
    },
  })
}

/** What keeps an answer from being stored, framed, or run as what it is not. */
const guarding = (formTargets: readonly string[]): Record<string, string> => ({
  'cache-control': 'no-store',
  'content-security-policy': [
    "default-src 'none'",
    "style-src 'self'",
    'img-src data:',
    // Chromium asks this of redirects that follow a form, too.
    `form-action ${["'self'", ...formTargets].join(' ')}`,
    "base-uri 'none'",
    "frame-ancestors 'none'",
  ].join('; '),
  'x-frame-options': 'DENY',
  'cross-origin-resource-policy': 'same-origin',
  // With `no-referrer` browsers would send `Origin: null` with our own forms.
  'referrer-policy': 'same-origin',
  'x-content-type-options': 'nosniff',
})

/** Sends the browser elsewhere; after a form the next request is a GET (RFC 9110, 15.4.4). */
export const redirectAnswer = (location: string, headers: Readonly<Record<string, string>> = {}): Response =>
  new Response(null, {
    status: 303,
    headers: { location, 'cache-control': 'no-store', 'referrer-policy': 'same-origin', ...headers },
  })

/** The stylesheet. Pages ask for it with its version, so that a new berth is never shown in an old one. */
export function styleAnswer(request: Request): Response {
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
