import { MARK_DATA_URL, MARK_ELEMENT, MARK_URL, STYLE_URL, STYLESHEET } from './assets.ts'
import { Html, html, type Part } from './html.ts'

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

/** Content of a document. */
type DocumentContent = Pick<Page, 'title' | 'header' | 'body' | 'isNarrow'> & {
  /** More of its head. */
  head?: Part
}

/** Builds a document that loads the stylesheet and the mark from the instance. Its mark leads to the start page. */
export const htmlDocument = ({ header, head, ...content }: DocumentContent): Html =>
  layOut({
    ...content,
    icon: MARK_URL,
    head: html`<link rel="stylesheet" href="${STYLE_URL}">${head}`,
    header: html`<a class="name" href="/">${NAME}</a>${header}`,
  })

/** Builds a document that loads nothing, for addresses whose paths are not the instance's. */
export const standaloneDocument = ({ header, head, ...content }: DocumentContent): Html =>
  layOut({
    ...content,
    icon: MARK_DATA_URL,
    head: html`<style>${new Html(STYLESHEET)}</style>${head}`,
    header: html`<span class="name">${NAME}</span>${header}`,
  })

/** The mark and berth's name. */
const NAME = html`${new Html(MARK_ELEMENT)}berth`

const layOut = ({
  title,
  icon,
  head,
  header,
  body,
  isNarrow,
}: DocumentContent & { icon: string }): Html => html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title} · berth</title>
<link rel="icon" type="image/svg+xml" href="${icon}">
${head}
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

/** Makes the response with a page. The page loads only the stylesheet and the mark, runs no script, and cannot be framed. */
export function pageResponse(page: Page): Response {
  const { title, body, status = 200, header, isNarrow = false, formTargets = [], headers } = page
  const document = htmlDocument({ title, body, isNarrow, header })
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
    "img-src 'self'",
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
