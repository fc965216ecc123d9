import { createHash } from 'node:crypto'
import { STYLESHEET } from '../../http/pages/assets.ts'
import { html } from '../../http/pages/html.ts'
import { standaloneDocument } from '../../http/pages/page.ts'
import { isSameText } from '../../runtime/secret.ts'

/** The result of a sign-in for the browser's page. */
export interface ResultPage {
  title: string
  text: string
}

/** A callback of the browser. */
interface Callback {
  /** Null if the person denied the request. */
  code: string | null
  /** Shows the result in the browser, whose page waits for it. */
  respond: (ending: ResultPage) => void
}

/** A listener for one callback. */
interface CallbackListener {
  port: number
  /** Resolves when the browser returns with the right state. */
  arrived: Promise<Callback>
  /** Stops listening after the page was sent. */
  stop: () => Promise<void>
}

/** Milliseconds within which the page reaches a browser on this machine. */
const FLUSH_MS = 1_000

/** Listens on a free port of 127.0.0.1 for the browser's return. Ignores requests without the right state. */
export function listenForCallback(state: string): CallbackListener {
  const { promise: arrived, resolve } = Promise.withResolvers<Callback>()
  let isTaken = false
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    idleTimeout: 255,
    fetch(request): Response | Promise<Response> {
      const { pathname, searchParams: query } = new URL(request.url)
      if (request.headers.get('host') !== `127.0.0.1:${server.port}`) return page(403, NOT_OURS)
      if (pathname !== '/callback') return page(404, NOTHING)
      if (request.method !== 'GET') return page(405, NOTHING)
      if (!isSameText(query.get('state') ?? '', state)) return page(400, NOT_OURS)
      const code = query.get('code')
      if (code === null && query.get('error') === null) return page(400, NOT_OURS)
      if (isTaken) return page(410, OVER)
      isTaken = true
      const ending = Promise.withResolvers<ResultPage>()
      resolve({ code: query.has('error') ? null : code, respond: ending.resolve })
      return ending.promise.then((how) => page(200, how))
    },
  })
  return {
    port: server.port ?? 0,
    arrived,
    async stop() {
      const stopped = server.stop()
      await Promise.race([stopped, Bun.sleep(FLUSH_MS)])
      await server.stop(true)
    },
  }
}

const NOTHING: ResultPage = {
  title: 'Nothing is here',
  text: 'A terminal that signs in with "berth login" listens here for a moment.',
}
const NOT_OURS: ResultPage = {
  title: 'Not the expected response',
  text: 'The terminal goes on waiting. Use the page that "berth login" has opened.',
}
const OVER: ResultPage = {
  title: 'This sign-in is over',
  text: 'The terminal has its response already. Close this page.',
}

/**
 * Hash that allows the stylesheet in the Content-Security-Policy. The stylesheet is inline, because the listener
 * stops before a second request.
 */
const STYLE_HASH = createHash('sha256').update(STYLESHEET).digest('base64')

/**
 * Returns a page that loads and runs nothing, cannot be framed and sends no Referer, because its address contains the
 * code.
 */
function page(status: number, { title, text }: ResultPage): Response {
  const document = standaloneDocument({ title, body: html`<p>${text}</p>`, isNarrow: true })
  return new Response(document.text, {
    status,
    headers: {
      'content-type': 'text/html; charset=utf-8',
      'cache-control': 'no-store',
      'content-security-policy': `default-src 'none'; style-src 'sha256-${STYLE_HASH}'; img-src data:; form-action 'none'; base-uri 'none'; frame-ancestors 'none'`,
      'x-frame-options': 'DENY',
      'x-content-type-options': 'nosniff',
      'referrer-policy': 'no-referrer',
      connection: 'close',
    },
  })
}
