import { MARK_URL } from '../pages/assets.ts'
import { html } from '../pages/html.ts'
import { ASSETS_PATH, type Bundle } from './bundle.ts'
import { ROOT_ID } from './root.ts'

/** What the page of the dashboard knows from the beginning. */
export interface DashboardContext {
  /** Proves that a request comes from a page of the session: sent in `x-berth-csrf`. */
  readonly csrf: string
  readonly account: { readonly id: string; readonly label: string }
  /** Of the browser, as `browsers.list` has it. */
  readonly session_id: string
  /** Whether the session may use the control API. */
  readonly is_admin: boolean
  /** Whether a link to the account would begin a session that may. */
  readonly is_first_account: boolean
  readonly version: string
  /** The data directory, an absolute path; null for a session without the rights of the instance. */
  readonly data_dir: string | null
  /** The address of the API, as in `http://127.0.0.1:4747`. */
  readonly base_url: string
  /** The time by berth's clock, as in `2026-05-01T12:00:00.000Z`. */
  readonly now: string
  /** Whether the page shows the report of a run that is over, so that nothing can be done. */
  readonly is_report?: boolean
}

/** Makes the response with the page of the dashboard. Its script draws everything. */
export function dashboardPage(
  context: DashboardContext,
  { script, style }: Pick<Bundle, 'script' | 'style'>,
): Response {
  // Terminals and the editor insert style elements, which need it.
  const nonce = Buffer.from(crypto.getRandomValues(new Uint8Array(16))).toString('base64url')
  const document = html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>berth</title>
<link rel="icon" type="image/svg+xml" href="${MARK_URL}">
<link rel="stylesheet" href="${ASSETS_PATH}${style}">
<script type="module" src="${ASSETS_PATH}${script}"></script>
</head>
<body>
<div id="${ROOT_ID}" data-context="${JSON.stringify(context)}" data-nonce="${nonce}"><noscript>The dashboard needs JavaScript. <a href="/access">Access</a> and the <a href="/docs/guide">guide</a> work without.</noscript></div>
</body>
</html>
`
  return new Response(document.text, {
    headers: { 'content-type': 'text/html; charset=utf-8', ...securityHeaders(context.base_url, nonce) },
  })
}

/** Returns headers that let the page load its own files and call its own instance, and nothing else. */
const securityHeaders = (origin: string, nonce: string): Record<string, string> => ({
  'cache-control': 'no-store',
  'content-security-policy': [
    "default-src 'none'",
    "script-src 'self'",
    `style-src 'self' 'nonce-${nonce}'`,
    "img-src 'self' data: blob:",
    `connect-src 'self' ${origin.replace(/^http/, 'ws')}`,
    // Apps have ports, or names below localhost, of their own: each is another origin. They are framed without rights.
    'frame-src http: https:',
    "form-action 'self'",
    "base-uri 'none'",
    "frame-ancestors 'none'",
  ].join('; '),
  'x-frame-options': 'DENY',
  'cross-origin-opener-policy': 'same-origin',
  // An app on another port is of the same site, whose pages share a process otherwise: one without a pause would stop this
  // page, in whose memory the token is.
  'origin-agent-cluster': '?1',
  'cross-origin-resource-policy': 'same-origin',
  'referrer-policy': 'same-origin',
  'x-content-type-options': 'nosniff',
})
