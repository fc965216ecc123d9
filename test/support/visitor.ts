import type { TestBerth } from './berth.ts'

/** A page that was answered. */
export interface Visited {
  status: number
  headers: Headers
  text: string
  /** Where it sends the browser, or null. */
  location: string | null
}

/** A browser without scripts: it keeps one cookie, and fills in the forms of the pages. */
export class Visitor {
  /** As the Cookie header has it; empty where it is not signed in. */
  cookie = ''

  constructor(readonly origin: string) {}

  /** One that is signed in to the account, by default the first one. */
  static async of(berth: TestBerth, accountId?: string): Promise<Visitor> {
    const visitor = new Visitor(berth.info.base_url)
    await visitor.get(await linkOf(berth, accountId))
    return visitor
  }

  /** Goes to a path or a URL; no redirect is followed. */
  get(path: string, headers: Record<string, string> = {}): Promise<Visited> {
    return this.send(path, { headers })
  }

  /** Sends a form as a browser does from a page of its own, with the session's token. */
  async submit(path: string, fields: Record<string, string> = {}): Promise<Visited> {
    return this.post(path, { csrf: await this.csrf(), ...fields })
  }

  /** Sends a form with these fields alone. */
  post(path: string, fields: Record<string, string>, headers: Record<string, string> = {}): Promise<Visited> {
    const usual = {
      origin: this.origin,
      'sec-fetch-site': 'same-origin',
      'content-type': 'application/x-www-form-urlencoded',
    }
    return this.send(path, {
      method: 'POST',
      body: new URLSearchParams(fields).toString(),
      headers: { ...usual, ...headers },
    })
  }

  /** The token that the forms of its session carry. */
  async csrf(): Promise<string> {
    return /name="csrf" value="([^"]+)"/.exec((await this.get('/access')).text)?.[1] ?? ''
  }

  /** Sends a request and takes over the cookie that comes. */
  async send(path: string, init: RequestInit): Promise<Visited> {
    const response = await fetch(new URL(path, this.origin), {
      redirect: 'manual',
      ...init,
      headers: { ...(this.cookie !== '' && { cookie: this.cookie }), ...(init.headers as object) },
    })
    const set = response.headers.getSetCookie()[0]
    if (set !== undefined) this.cookie = /Max-Age=0/i.test(set) ? '' : (set.split(';')[0] ?? '')
    const location = response.headers.get('location')
    return { status: response.status, headers: response.headers, text: await response.text(), location }
  }
}

/** A fresh link that signs a browser in. */
export async function linkOf(berth: TestBerth, accountId?: string, returnTo?: string): Promise<string> {
  const body = { account_id: accountId, return_to: returnTo }
  const { status, body: link } = await berth.control('POST', '/sign-in-links', body)
  if (status !== 201) throw new Error(`no link: ${JSON.stringify(link)}`)
  return link.url
}
