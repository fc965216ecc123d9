import { createHash } from 'node:crypto'
// The package exports no name for this file. In the executable the path leads to its embedded copy.
import scalar from '../../../node_modules/@scalar/api-reference/dist/browser/standalone.js' with {
  type: 'file',
}
import { etagOf } from '../etag.ts'

/** Where the script is served, whichever page asks for it. */
export const VIEWER_PATH = '/docs/scalar.js'

/** What a page shows. */
export interface Shown {
  title: string
  /** Path of the document. */
  document: string
  /** The credential that the page asks for, by its name in the document. */
  securityScheme: string
}

/** A page and its policy. */
export interface DocsPage {
  html: string
  contentSecurityPolicy: string
}

/** The one script that pages load. */
export interface Viewer {
  script: Blob
  etag: string
}

/** Scalar's options: what would call or lead to services elsewhere is switched off. */
const optionsFor = ({ document, securityScheme }: Shown) => ({
  url: document,
  telemetry: false,
  withDefaultFonts: false,
  hideClientButton: true,
  showDeveloperTools: 'never',
  agent: { disabled: true },
  mcp: { disabled: true },
  documentDownloadType: 'direct',
  defaultHttpClient: { targetKey: 'shell', clientKey: 'curl' },
  authentication: { preferredSecurityScheme: securityScheme },
  // Links that would lead away from the instance.
  customCss: 'a[href*="scalar.com"], a[href*="developer.mozilla.org"] { display: none }',
  orderRequiredPropertiesFirst: true,
  orderSchemaPropertiesBy: 'preserve',
})

/** Reads the script, whose version stands in its address. */
export async function loadViewer(): Promise<Viewer> {
  const script = Bun.file(scalar)
  return { script, etag: etagOf(await script.bytes()) }
}

/** Writes a page around the script. */
export function docsPage(shown: Shown, { etag }: Viewer): DocsPage {
  // Given the document's relative server, Scalar would write a double slash into what it shows.
  const start = `Scalar.createApiReference('#reference', { ...${JSON.stringify(optionsFor(shown))}, servers: [{ url: location.origin }] })`
  const html = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${shown.title}</title>
<link rel="icon" href="data:,">
</head>
<body>
<noscript>This page needs JavaScript. <a href="${shown.document}">openapi.json</a> says the same without.</noscript>
<div id="reference"></div>
<script src="${VIEWER_PATH}?v=${JSON.parse(etag)}"></script>
<script>${start}</script>
</body>
</html>
`
  return { html, contentSecurityPolicy: policy(start) }
}

/**
 * The page may reach its own instance and nothing else. Styles stand inline in what Scalar renders,
 * which no nonce can allow; scripts do not.
 */
function policy(start: string): string {
  const hash = createHash('sha256').update(start).digest('base64')
  return [
    "default-src 'none'",
    `script-src 'self' 'sha256-${hash}'`,
    "style-src 'self' 'unsafe-inline'",
    "img-src 'self' data:",
    "font-src 'self' data:",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join('; ')
}
