import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import * as v2 from '@modelcontextprotocol/client'
import * as v1 from '@modelcontextprotocol/sdk/client/auth.js'
import * as oauth from 'oauth4webapi'
import { type TestBerth, testBerth } from '../support/berth.ts'
import { McpHost } from '../support/mcp-host.ts'
import { CALLBACK, consent, registerClient, signedInBrowser, type TestBrowser } from '../support/oauth.ts'
import { freePort } from '../support/ports.ts'

let berth: TestBerth
let origin: string
let browser: TestBrowser
beforeAll(async () => {
  berth = await testBerth()
  origin = berth.info.base_url
  browser = await signedInBrowser(berth)
})
afterAll(() => berth[Symbol.asyncDispose]())

const reach = async (token: string): Promise<number> =>
  (await fetch(`${origin}/servers`, { headers: { authorization: `Bearer ${token}` } })).status

/** Has the person let a client in, at the address that the client opened. */
const visit = (url: string | URL): Promise<URL> => {
  const { pathname, search } = new URL(url)
  return consent(browser, `${pathname}${search}`)
}

describe('oauth4webapi, which checks every answer strictly', () => {
  test.each(['none', 'client_secret_post', 'client_secret_basic'] as const)(
    'goes the whole way with %s',
    async (method) => {
      const http = { [oauth.allowInsecureRequests]: true }
      const resource = new URL(`${origin}/mcp`)
      const described = await oauth.processResourceDiscoveryResponse(
        resource,
        await oauth.resourceDiscoveryRequest(resource, http),
      )
      const issuer = new URL(described.authorization_servers?.[0] ?? '')
      const as = await oauth.processDiscoveryResponse(
        issuer,
        await oauth.discoveryRequest(issuer, { ...http, algorithm: 'oauth2' }),
      )
      const client = await oauth.processDynamicClientRegistrationResponse(
        await oauth.dynamicClientRegistrationRequest(
          as,
          { client_name: 'strict', redirect_uris: [CALLBACK], token_endpoint_auth_method: method },
          http,
        ),
      )
      const secret = String(client.client_secret)
      const show = {
        none: () => oauth.None(),
        client_secret_post: () => oauth.ClientSecretPost(secret),
        client_secret_basic: () => oauth.ClientSecretBasic(secret),
      }[method]()
      const verifier = oauth.generateRandomCodeVerifier()
      const state = oauth.generateRandomState()
      const url = new URL(as.authorization_endpoint ?? '')
      url.search = `${new URLSearchParams({
        response_type: 'code',
        client_id: client.client_id,
        redirect_uri: CALLBACK,
        state,
        scope: 'offline_access',
        resource: resource.href,
        code_challenge: await oauth.calculatePKCECodeChallenge(verifier),
        code_challenge_method: 'S256',
      })}`
      const parameters = oauth.validateAuthResponse(as, client, await visit(url), state)
      const tokens = await oauth.processAuthorizationCodeResponse(
        as,
        client,
        await oauth.authorizationCodeGrantRequest(as, client, show, parameters, CALLBACK, verifier, http),
      )
      expect(await reach(tokens.access_token)).toBe(200)
      const called = oauth.protectedResourceRequest(
        tokens.access_token,
        'GET',
        new URL(`${origin}/servers`),
        undefined,
        null,
        http,
      )
      expect((await called).status).toBe(200)

      const next = await oauth.processRefreshTokenResponse(
        as,
        client,
        await oauth.refreshTokenGrantRequest(as, client, show, tokens.refresh_token ?? '', http),
      )
      await oauth.processRevocationResponse(
        await oauth.revocationRequest(as, client, show, next.refresh_token ?? '', http),
      )
      expect(await reach(next.access_token)).toBe(401)
    },
  )
})

describe('the MCP clients', () => {
  const steps: Record<
    string,
    (host: McpHost, given?: { authorizationCode: string; iss: string }) => Promise<string>
  > = {
    'version 2': (host, given) => v2.auth(host, { serverUrl: `${origin}/mcp`, ...given }),
    'version 1': (host, given) =>
      v1.auth(host as unknown as v1.OAuthClientProvider, {
        serverUrl: `${origin}/mcp`,
        ...(given && { authorizationCode: given.authorizationCode }),
      }),
  }

  test.each(Object.keys(steps))('of %s get in from nothing, and refresh by themselves', async (version) => {
    const step = steps[version] ?? (() => Promise.reject(new Error('no such version')))
    const host = new McpHost()
    expect(await step(host)).toBe('REDIRECT')
    const back = await visit(host.opened ?? '')
    expect(back.searchParams.get('state')).toBe(host.state())
    const authorizationCode = back.searchParams.get('code') ?? ''
    expect(await step(host, { authorizationCode, iss: back.searchParams.get('iss') ?? '' })).toBe(
      'AUTHORIZED',
    )
    const first = host.tokens()?.access_token ?? ''
    expect(await reach(first)).toBe(200)
    expect(await step(host)).toBe('AUTHORIZED')
    const second = host.tokens()?.access_token ?? ''
    expect(second).not.toBe(first)
    expect(await reach(second)).toBe(200)
  })
})

describe('the conformance suite of MCP', () => {
  test('passes every scenario of an authorization server', async () => {
    const client = await registerClient(origin, { redirect_uris: ['http://127.0.0.1/callback'] })
    const suite = Bun.spawn(
      [
        process.execPath,
        '--bun',
        'node_modules/@modelcontextprotocol/conformance/dist/index.js',
        'authorization',
        ...['--url', origin, '--client-id', client.client_id, '--port', String(freePort())],
        ...['--resource', `${origin}/mcp`],
      ],
      { cwd: `${import.meta.dir}/../..`, stdin: 'ignore', stdout: 'pipe', stderr: 'pipe' },
    )
    try {
      const errors = new Response(suite.stderr).text()
      let output = ''
      let visited: Promise<unknown> | undefined
      const decoder = new TextDecoder()
      for await (const chunk of suite.stdout) {
        output += decoder.decode(chunk, { stream: true })
        const asked = new RegExp(`^${origin}/oauth/authorize\\?.*$`, 'm').exec(output)?.[0]
        // It waits for the browser that it asks for.
        if (asked && !visited && output.includes('Waiting'))
          visited = visit(asked).then((back) => fetch(back))
      }
      await visited
      const report = `${output}\n${await errors}`
      expect(report).toContain('authorization-code-grant')
      expect(report).toContain('authorization-server-metadata')
      expect(report).not.toMatch(/FAILURE|SKIPPED|[1-9]\d* failed/)
    } finally {
      suite.kill()
      await suite.exited
    }
  })
})
