import { MARK_DATA_URL } from '../pages/assets.ts'
import { Html, html } from '../pages/html.ts'
import type { DashboardContext } from './page.ts'
import { RECORDED_ID, ROOT_ID } from './root.ts'

/** A file of a report besides the page, as the page shows it. */
interface ShownLog {
  readonly name: string
  /** Its last lines. */
  readonly text: string
  /** Whether lines before these were left out. */
  readonly isCut: boolean
}

/** What the page of a report shows. Objects are as the API returns them. */
export interface RecordedRun {
  readonly context: DashboardContext
  readonly title: string
  /** Texts of the report's own about the run, such as findings. */
  readonly lines: readonly string[]
  /** Requests, events and deliveries, newest first. */
  readonly requests: readonly unknown[]
  readonly events: readonly unknown[]
  readonly deliveries: readonly unknown[]
  /** Every change of an object, oldest first. */
  readonly objects: readonly unknown[]
  /** Events of transcripts by the ids of tasks. */
  readonly transcripts: Readonly<Record<string, readonly unknown[]>>
  readonly logs: readonly ShownLog[]
  /** What had to be left out, as sentences. */
  readonly omitted: readonly string[]
}

/** The script and the stylesheet of the page. */
export interface ReportBundle {
  readonly script: string
  readonly style: string
}

/**
 * Returns a page that opens from the file system and loads nothing. What was recorded is data in it, which no browser runs: its
 * policy allows the one script alone, by its hash (Content Security Policy Level 3, section 2.3.1).
 */
export function reportDocument(recorded: RecordedRun, { script, style }: ReportBundle): string {
  const code = script.replaceAll('</script', '<\\/script').replaceAll('<!--', '<\\!--')
  const policy = [
    "default-src 'none'",
    `script-src '${hashOf(code)}'`,
    `style-src '${hashOf(style)}'`,
    'img-src data:',
    "form-action 'none'",
    "base-uri 'none'",
  ].join('; ')
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="content-security-policy" content="${policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="referrer" content="no-referrer">
<title>${recorded.title}</title>
<link rel="icon" type="image/svg+xml" href="${MARK_DATA_URL}">
<style>${new Html(style)}</style>
</head>
<body>
<div id="${ROOT_ID}"><noscript>This page needs JavaScript. summary.md and journal.jsonl beside it work without.</noscript></div>
<script type="application/json" id="${RECORDED_ID}">${new Html(asData(recorded))}</script>
<script type="module">${new Html(code)}</script>
</body>
</html>
`.text
}

/** Returns JSON that contains no markup, wherever it is in a page. */
const asData = (value: unknown): string => JSON.stringify(value).replaceAll('<', '\\u003c')

const hashOf = (text: string): string =>
  `sha256-${new Bun.CryptoHasher('sha256').update(text).digest('base64')}`
