import { MARK_DATA_URL, MARK_ELEMENT, MARK_URL, STYLE_URL, STYLESHEET } from './assets.ts'
import { Html, html, type Part } from './html.ts'

/** A page. */
export interface Page {
  title: string
  body: Part
  status?: number
  /** Content of the header, after berth's name. */
  header?: Part
  /** Content beside the page, before it in reading order: a landmark. The page is then as wide as the window. */
  aside?: Part
  /** URL of the only script that the page runs. The script may send requests to the instance. */
  script?: string
  /** URL of a stylesheet in addition to that of all pages. */
  style?: string
  /** Narrows the page. For forms and messages, which are hard to read in long lines. */
  isNarrow?: boolean
  /** Targets of its forms in addition to the instance, as sources of the policy. Redirects count. */
  formTargets?: readonly string[]
  headers?: Readonly<Record<string, string>>
}

/** Content of a document. */
type DocumentContent = Pick<Page, 'title' | 'header' | 'body' | 'isNarrow' | 'aside'> & {
  /** More of its head. */
  head?: Part
}

/** Builds a document that loads the stylesheet and the mark from the instance. Its mark leads to the start page. */
const htmlDocument = ({ header, head, ...content }: DocumentContent): Html =>
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
  aside,
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
<body${aside && html` class="beside"`}>
${aside && html`<a class="skip" href="#main">Skip to the content</a>`}
<header><div>${header}</div></header>
${aside}
<main id="main"${isNarrow && html` class="narrow"`}>
<h1>${title}</h1>
${body}
</main>
</body>
</html>
`

/**
 * Makes the response with a page. The page loads only the stylesheets and the mark, runs no other script than its own,
 * and cannot be framed.
 */
export function pageResponse(page: Page): Response {
  const { status = 200, script, style, formTargets = [], headers, ...content } = page
  const document = htmlDocument({
    ...content,
    head: html`${style !== undefined && html`<link rel="stylesheet" href="${style}">`}${script !== undefined && html`<script src="${script}" defer></script>`}`,
  })
  return new Response(document.text, {
    status,
    headers: {
      'content-type': 'text/html; charset=utf-8',
      ...securityHeaders(formTargets, script !== undefined),
      ...headers,
    },
  })
}

/** Returns headers that keep a page from being stored, framed, or read as another type. */
const securityHeaders = (formTargets: readonly string[], hasScript: boolean): Record<string, string> => ({
  'cache-control': 'no-store',
  'content-security-policy': [
    "default-src 'none'",
    "style-src 'self'",
    "img-src 'self'",
    ...(hasScript ? ["script-src 'self'", "connect-src 'self'"] : []),
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

/** The pages that the header links to. */
const PAGES = [
  { path: '/', name: 'Dashboard' },
  { path: '/access', name: 'Access' },
  { path: '/docs/guide', name: 'Guide' },
  { path: '/docs', name: 'API' },
] as const

/**
 * Renders the links of the header.
 *
 * @param here the path of the page itself, or of the one that it is below
 */
export const navigation = (here: string | null = null): Html => html`<nav aria-label="Pages">
${PAGES.map(({ path, name }) => html`<a href="${path}" ${path === here && html`aria-current="page"`}>${name}</a>\n`)}
</nav>`

/** Redirects the browser. After a form the next request is a GET (RFC 9110, 15.4.4). */
export const redirectResponse = (
  location: string,
  headers: Readonly<Record<string, string>> = {},
): Response =>
  new Response(null, {
    status: 303,
    headers: { location, 'cache-control': 'no-store', 'referrer-policy': 'same-origin', ...headers },
  })
