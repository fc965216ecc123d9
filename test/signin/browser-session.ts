import { createHash, randomBytes } from 'node:crypto'

/** A browser that is signed in, played by fetch: it keeps its cookie and follows nothing by itself. */
export interface SignedInBrowser {
  readonly cookie: string
  get(path: string): Promise<Response>
  /** Sends a form of a page of the instance itself. */
  post(path: string, form: Record<string, string>, headers?: Record<string, string>): Promise<Response>
}

/** Signs in with a key, as a person does on the page. */
export async function signInBrowser(baseUrl: string, apiKey: string): Promise<SignedInBrowser> {
  const answer = await fetch(`${baseUrl}/signin`, {
    method: 'POST',
    redirect: 'manual',
    body: new URLSearchParams({ api_key: apiKey }),
  })
  const cookie = answer.headers.get('set-cookie')?.split(';')[0] ?? ''
  if (answer.status !== 303 || cookie === '') throw new Error(`not signed in: ${answer.status}`)
  const headers = { cookie }
  return {
    cookie,
    get: (path) => fetch(`${baseUrl}${path}`, { headers, redirect: 'manual' }),
    post: (path, form, more = {}) =>
      fetch(`${baseUrl}${path}`, {
        method: 'POST',
        headers: { ...headers, origin: baseUrl, ...more },
        redirect: 'manual',
        body: new URLSearchParams(form),
      }),
  }
}

/** The hidden fields of a page's form. */
export const hiddenFields = (page: string): Record<string, string> =>
  Object.fromEntries(
    [...page.matchAll(/<input type="hidden" name="([^"]+)" value="([^"]*)">/g)].map(
      ([, name = '', value = '']) => [name, unescapeHtml(value)],
    ),
  )

const ENTITIES: Record<string, string> = { lt: '<', gt: '>', quot: '"', '#x27': "'", amp: '&' }

const unescapeHtml = (text: string): string =>
  text.replace(/&([^;]+);/g, (whole, name: string) => ENTITIES[name] ?? whole)

/** Opens the page that a terminal asks for and presses one of its buttons. */
export async function decide(
  browser: SignedInBrowser,
  path: string,
  decision: 'approve' | 'deny',
): Promise<Response> {
  const page = await browser.get(path)
  if (page.status !== 200) throw new Error(`no page: ${page.status}`)
  return browser.post('/cli/authorize', { ...hiddenFields(await page.text()), decision })
}

/** What a terminal makes up for one sign-in (RFC 7636). */
export function newChallenge(): { verifier: string; challenge: string; state: string } {
  const verifier = randomBytes(32).toString('base64url')
  return {
    verifier,
    challenge: createHash('sha256').update(verifier).digest('base64url'),
    state: randomBytes(24).toString('base64url'),
  }
}
