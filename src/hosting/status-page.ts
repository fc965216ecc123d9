import { type Html, html } from '../http/pages/html.ts'
import { logCommand } from './app-responder.ts'
import type { AppLog } from './app-runtime/log/log.ts'
import { HTML, type OwnResponse, ownHeaders, pageOf, unavailable, wantsHtml } from './sites/own-response.ts'
import type { FileRequest, FileResponse, ServeFiles } from './sites/upstream.ts'

/** Number of log lines on the page. */
const LOG_LINES = 20

/** The app that a page is about. */
interface PageApp {
  readonly serverId: string
  /** Slug of the project; null for what a server publishes. */
  readonly slug: string | null
  readonly log: AppLog
  /** The command that starts or failed last; null if none is known. */
  readonly command: string | null
  /** How the app crashed, as sentences for a person; null if it did not. */
  readonly crashText: string | null
  /** Whether its server sleeps. */
  readonly isAsleep: boolean
  /** See `HostedApp.mayReadLog`. */
  mayReadLog(cookies: string): Promise<boolean>
}

/**
 * Returns what responds for an app that does not respond itself: for a person a page that names the app, what happened
 * and the next step, for a program the error alone. Only a browser that is signed in sees the command and the end of the
 * log.
 *
 * @param reason why it does not respond; null while it starts
 */
export const serveStatus =
  (app: PageApp, reason: string | null): ServeFiles =>
  async (request): Promise<FileResponse> => {
    const crash = app.crashText
    const response = { ...unavailable(reason), ...(crash && { message: `${crash} Its log tells why.` }) }
    const isPage = wantsHtml(request.header('accept'))
    const isReader = isPage && (await mayReadLog(app, request))
    const content = isPage
      ? await statusPage(app, response, reason === null, isReader)
      : JSON.stringify({ error: response.code, message: response.message })
    const body = Buffer.from(content)
    const type = isPage ? HTML : 'application/json'
    const headers = Object.fromEntries(
      ownHeaders(response, type, body.length).map(([name, value]) => [name.toLowerCase(), value]),
    )
    if (isReader) headers['cross-origin-opener-policy'] = openerPolicy(request.header('user-agent'))
    return { status: response.status, headers, body }
  }

/**
 * Reports whether a page for a request may show an app's log. Scripts of the app are of the same origin as the page, and
 * could read it. They cannot set these fields, by which browsers tell what they ask for.
 */
async function mayReadLog(app: PageApp, request: FileRequest): Promise<boolean> {
  const isNavigation = request.header('sec-fetch-dest') === 'document'
  // A service worker has asked for it, and gets it before the page does.
  const isPreload = request.header('service-worker-navigation-preload') !== null
  return isNavigation && !isPreload && (await app.mayReadLog(request.header('cookie') ?? ''))
}

/**
 * Returns the policy that separates a page with the log from a page of the app that has opened it in a window: of the same
 * origin, it could read it. Without an origin of its own (`sandbox`), a page that reloads itself would not send the app its
 * strict cookies.
 */
function openerPolicy(userAgent: string | null): string {
  // Firefox does not know the other value, and would separate nothing. This one does not separate pages that both have it.
  return userAgent?.includes('Firefox/') ? 'same-origin' : 'noopener-allow-popups'
}

/** @param isReader whether the page may show the log */
async function statusPage(
  app: PageApp,
  response: OwnResponse,
  isStarting: boolean,
  isReader: boolean,
): Promise<string> {
  const name = app.slug ?? app.serverId
  const body = html`<p>${response.message}</p>
${isReader ? await detailsOf(app) : null}
${nextSteps(app, isStarting && app.crashText === null)}
${isReader ? null : html`<p class="quiet">A browser that is signed in to berth (<code>berth open</code>, or the link of <code>berth open --print</code>) also sees the command and the end of the log here.</p>`}`
  const state = app.crashText !== null ? 'has crashed' : isStarting ? 'is starting' : 'is not running'
  return pageOf(`${name} ${state}`, body, response.reload)
}

async function detailsOf({ log, command }: PageApp): Promise<Html> {
  const lines = (await log.tail(LOG_LINES)).map(({ source, text }) => `${source.padEnd(7)}  ${text}`)
  return html`${command === null ? null : html`<p>Its command: <code>${command}</code></p>`}
${lines.length === 0 ? null : html`<h2>The end of its log</h2>\n<pre>${lines.join('\n')}</pre>`}`
}

function nextSteps({ slug, serverId, isAsleep, crashText }: PageApp, isStarting: boolean): Html {
  const steps: [command: string, what: string][] = []
  if (isAsleep) steps.push([`berth servers start ${serverId}`, 'starts its server, and the app with it'])
  else {
    steps.push([logCommand({ slug, serverId }), 'shows its whole log'])
    if (!isStarting && slug !== null)
      steps.push([`berth projects push --project ${slug}`, 'sends the code again once it is fixed'])
    if (!isStarting && slug !== null) {
      const again = crashText === null ? 'init' : 'restart'
      steps.push([`berth projects ${again} ${slug}`, 'tries again as it is'])
    }
    if (!isStarting && slug === null)
      steps.push([`berth deploy --server ${serverId}`, 'publishes it again once it is fixed'])
  }
  return html`<h2>Next</h2>
<ul>
${steps.map(([command, what]) => html`<li><code>${command}</code> ${what}</li>\n`)}</ul>`
}
