import { createHash } from 'node:crypto'
// The package exports no name for this file. In the executable the path leads to its embedded copy.
import scalar from '../../../node_modules/@scalar/api-reference/dist/browser/standalone.js' with {
  type: 'file',
}
import { etagOf } from '../etag.ts'

/** The page and the one script that it loads. */
export interface DocsPage {
  html: string
  contentSecurityPolicy: string
  script: Blob
  scriptEtag: string
}

/** Scalar's options: what would call or lead to services elsewhere is switched off. */
const OPTIONS = {
  url: '/openapi.json',
  telemetry: false,
  withDefaultFonts: false,
  hideClientButton: true,
  showDeveloperTools: 'never',
  agent: { disabled: true },
  mcp: { disabled: true },
  documentDownloadType: 'direct',
  defaultHttpClient: { targetKey: 'shell', clientKey: 'curl' },
  authentication: { preferredSecurityScheme: 'apiKey' },
  // Links that would lead away from the instance.
  customCss: 'a[href*="scalar.com"], a[href*="developer.mozilla.org"] { display: none }',
  orderRequiredPropertiesFirst: true,
  orderSchemaPropertiesBy: 'preserve',
}

// Given the document's relative server, Scalar would write a double slash into what it shows.
const START = `Scalar.createApiReference('#reference', { ...${JSON.stringify(OPTIONS)}, servers: [{ url: location.origin }] })`

/** Reads the script's version and writes the page around it. */
export async function loadDocsPage(): Promise<DocsPage> {
  const script = Bun.file(scalar)
  const scriptEtag = etagOf(await script.bytes())
  const html = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>berth</title>
<link rel="icon" href="data:,">
</head>
<body>
<noscript>This page needs JavaScript. <a href="/openapi.json">openapi.json</a> says the same without.</noscript>
<div id="reference"></div>
<script src="/docs/scalar.js?v=${JSON.parse(scriptEtag)}"></script>
<script>${START}</script>
</body>
</html>
`
  return { html, contentSecurityPolicy: policy(), script, scriptEtag }
}

/**
 * The page may reach its own instance and nothing else. Styles stand inline in what Scalar renders,
 * which no nonce can allow; scripts do not.
 */
function policy(): string {
  const start = createHash('sha256').update(START).digest('base64')
  return [
    "default-src 'none'",
    `script-src 'self' 'sha256-${start}'`,
    "style-src 'self' 'unsafe-inline'",
    "img-src 'self' data:",
    "font-src 'self' data:",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join('; ')
}
