/** Clients that register, have a person let them in, and get tokens: the whole flow by plain requests. */

/** What the flow needs of a berth: where it is, and its account's key. */
export interface SignInPlace {
  readonly info: { readonly base_url: string; readonly api_key: string }
}

/** Where the codes of test clients go; nobody has to listen there. */
export const CALLBACK = 'http://127.0.0.1:33418/callback'

/** A client's registration as the server answers it. */
export interface RegisteredClient {
  client_id: string
  client_secret?: string
  redirect_uris: string[]
}

/** Tokens as the server answers them. */
export interface TokenAnswer {
  access_token: string
  refresh_token: string
  token_type: string
  expires_in: number
  scope: string
}

/** What a person lets a client reach; nothing said means the whole account. */
export interface ChosenReach {
  servers?: readonly string[]
  projects?: readonly string[]
}

/** How a flow differs from the usual one. */
export interface FlowOptions extends ChosenReach {
  /** The client; a new public one by default. */
  client?: RegisteredClient
  redirectUri?: string
  /** Where berth is asked; its base URL by default. */
  origin?: string
  /** A key of the account that lets the client in; the first one by default. */
  apiKey?: string
  /** A browser that is signed in; a new one by default. */
  browser?: TestBrowser
  /** More parameters of the authorization request; null takes one away. */
  parameters?: Record<string, string | null>
}

/** A PKCE verifier and its challenge (RFC 7636, appendix B). */
export const VERIFIER = 'dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk'
export const CHALLENGE = 'E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM'

/** A form's body. */
export const formOf = (fields: Record<string, string> | [string, string][]): RequestInit => ({
  method: 'POST',
  body: new URLSearchParams(fields),
})

/** A client that registers as public, unless its metadata say otherwise. */
export async function registerClient(origin: string, metadata: object = {}): Promise<RegisteredClient> {
  const response = await fetch(`${origin}/oauth/register`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({
      client_name: 'Test client',
      redirect_uris: [CALLBACK],
      token_endpoint_auth_method: 'none',
      ...metadata,
    }),
  })
  if (response.status !== 201) throw new Error(`not registered: ${response.status} ${await response.text()}`)
  return (await response.json()) as RegisteredClient
}

/** A browser that keeps one cookie and follows nothing by itself. */
export class TestBrowser {
  constructor(
    readonly origin: string,
    /** As in `name=value`; empty while it is not signed in. */
    public cookie = '',
  ) {}

  /** A request as a page of berth's own makes it. */
  async send(path: string, init: RequestInit = {}): Promise<Response> {
    const headers = { cookie: this.cookie, origin: this.origin, ...(init.headers as object) }
    const response = await fetch(new URL(path, this.origin), { redirect: 'manual', ...init, headers })
    const [cookie] = response.headers.getSetCookie()
    if (cookie !== undefined) this.cookie = cookie.split(';')[0] ?? ''
    return response
  }
}

/** A browser that signed in with a key of the account. */
export async function signedInBrowser(
  berth: SignInPlace,
  { origin = berth.info.base_url, apiKey = berth.info.api_key }: { origin?: string; apiKey?: string } = {},
): Promise<TestBrowser> {
  const browser = new TestBrowser(origin)
  const response = await browser.send('/signin', formOf({ api_key: apiKey }))
  if (response.status !== 303 || !browser.cookie) throw new Error(`not signed in: ${response.status}`)
  return browser
}

/** The path of an authorization request. */
export function authorizePath(client: RegisteredClient, options: FlowOptions = {}): string {
  const given = {
    response_type: 'code',
    client_id: client.client_id,
    redirect_uri: options.redirectUri ?? client.redirect_uris[0] ?? '',
    code_challenge: CHALLENGE,
    code_challenge_method: 'S256',
    state: 'a state',
    ...options.parameters,
  }
  const query = Object.entries(given).filter((entry): entry is [string, string] => entry[1] !== null)
  return `/oauth/authorize?${new URLSearchParams(query)}`
}

/** The hidden fields of the form on a page. */
export function hiddenFields(page: string): Record<string, string> {
  const found = page.matchAll(/<input type="hidden" name="([^"]*)" value="([^"]*)">/g)
  return Object.fromEntries([...found].map(([, name = '', value = '']) => [name, value]))
}

/** The form that a person sends who lets a client in. */
export const allowForm = (
  hidden: Record<string, string>,
  { servers = [], projects = [] }: ChosenReach = {},
) =>
  formOf([
    ...Object.entries(hidden),
    ['access', servers.length + projects.length > 0 ? 'chosen' : 'all'],
    ...servers.map((id): [string, string] => ['server', id]),
    ...projects.map((id): [string, string] => ['project', id]),
    ['decision', 'allow'],
  ])

/** Has a person let a client in. @returns where the browser is sent then */
export async function consent(browser: TestBrowser, path: string, reach: ChosenReach = {}): Promise<URL> {
  const page = await browser.send(path)
  const text = await page.text()
  if (page.status !== 200) throw new Error(`no consent page: ${page.status} ${text}`)
  const answer = await browser.send('/oauth/authorize', allowForm(hiddenFields(text), reach))
  const location = answer.headers.get('location')
  if (answer.status !== 303 || !location)
    throw new Error(`no way back: ${answer.status} ${await answer.text()}`)
  return new URL(location)
}

/** A client with a code that waits to be exchanged. */
export interface WaitingCode {
  client: RegisteredClient
  code: string
  redirectUri: string
  origin: string
}

/** The flow up to the code. */
export async function authorizationCode(berth: SignInPlace, options: FlowOptions = {}): Promise<WaitingCode> {
  const origin = options.origin ?? berth.info.base_url
  const client = options.client ?? (await registerClient(origin))
  const browser = options.browser ?? (await signedInBrowser(berth, { ...options, origin }))
  const back = await consent(browser, authorizePath(client, options), options)
  const code = back.searchParams.get('code')
  if (code === null) throw new Error(`no code: ${back}`)
  return { client, code, redirectUri: options.redirectUri ?? client.redirect_uris[0] ?? '', origin }
}

/** Asks the token endpoint. */
export const askTokens = (origin: string, fields: Record<string, string>): Promise<Response> =>
  fetch(`${origin}/oauth/token`, formOf(fields))

/** Exchanges a code; fields on top. */
export const exchangeCode = (
  { client, code, redirectUri, origin }: WaitingCode,
  fields: Record<string, string> = {},
): Promise<Response> =>
  askTokens(origin, {
    grant_type: 'authorization_code',
    client_id: client.client_id,
    ...(client.client_secret === undefined ? {} : { client_secret: client.client_secret }),
    code,
    code_verifier: VERIFIER,
    redirect_uri: redirectUri,
    ...fields,
  })

/** Exchanges a refresh token. */
export const refreshTokens = (origin: string, client: RegisteredClient, token: string): Promise<Response> =>
  askTokens(origin, { grant_type: 'refresh_token', client_id: client.client_id, refresh_token: token })

/** The whole flow. */
export async function grantedTokens(
  berth: SignInPlace,
  options: FlowOptions = {},
): Promise<WaitingCode & { tokens: TokenAnswer }> {
  const waiting = await authorizationCode(berth, options)
  const response = await exchangeCode(waiting)
  if (response.status !== 200) throw new Error(`no tokens: ${response.status} ${await response.text()}`)
  return { ...waiting, tokens: (await response.json()) as TokenAnswer }
}

/** An access token for a berth, by the whole flow: for the whole account, or for what `servers` and `projects` name. */
export async function accessToken(berth: SignInPlace, options: FlowOptions = {}): Promise<string> {
  return (await grantedTokens(berth, options)).tokens.access_token
}

/** Where an answer sends the browser, its parameters taken apart. */
export function sentTo(response: Response): {
  status: number
  to: string
  parameters: Record<string, string>
} {
  const { protocol, host, pathname, searchParams } = new URL(
    response.headers.get('location') ?? 'none:',
    response.url,
  )
  return {
    status: response.status,
    to: `${protocol}//${host}${pathname}`,
    parameters: Object.fromEntries(searchParams),
  }
}
