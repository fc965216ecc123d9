import { createHash } from 'node:crypto'
// Imported by its path, because the package exports no name for it. In the executable the path leads to its embedded
// copy.
import scalar from '../../../node_modules/@scalar/api-reference/dist/browser/standalone.js' with {
  type: 'file',
}
import { etagOf } from '../etag.ts'

/** The path of the script, the same for all pages. */
export const VIEWER_PATH = '/docs/scalar.js'

/** Options of a page. */
export interface DocsPageOptions {
  title: string
  /** The path of the document. */
  document: string
  /** The security scheme that the page asks for, by its name in the document. */
  securityScheme: string
}

/** A page and its content security policy. */
export interface DocsPage {
  html: string
  contentSecurityPolicy: string
}

/** The only script that pages load. */
export interface Viewer {
  script: Blob
  etag: string
}

/** Returns Scalar's options. Everything that calls or links to external services is disabled. */
const optionsFor = ({ document, securityScheme }: DocsPageOptions) => ({
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
  // Hides links that would lead away from the instance.
  customCss: 'a[href*="scalar.com"], a[href*="developer.mozilla.org"] { display: none }',
  orderRequiredPropertiesFirst: true,
  orderSchemaPropertiesBy: 'preserve',
})

/** Loads the script. Its URL contains its version. */
export async function loadViewer(): Promise<Viewer> {
  const script = Bun.file(scalar)
  return { script, etag: etagOf(await script.bytes()) }
}

/** Renders a page that loads the script. */
export function docsPage(shown: DocsPageOptions, { etag }: Viewer): DocsPage {
  // With the document's relative server, Scalar would show a double slash.
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
 * Returns a policy that allows the page to reach only its own instance. Scalar renders inline styles, which no nonce
 * can allow. Inline scripts need their hash.
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
