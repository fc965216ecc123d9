import { describe, expect, test } from 'bun:test'
import * as v2 from '@modelcontextprotocol/client'
import * as v1 from '@modelcontextprotocol/sdk/client/auth.js'
import { Client as ClientV1 } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport as TransportV1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import * as oauth from 'oauth4webapi'
import { berthForTests } from '../support/berth.ts'
import { McpHost } from '../support/mcp-host.ts'
import { CALLBACK, consent, registerClient, signedInBrowser } from '../support/oauth.ts'
import { freePort } from '../support/ports.ts'

const berth = await berthForTests()
const origin = berth.info.base_url
const browser = await signedInBrowser(berth)

const reach = async (token: string): Promise<number> =>
  (await fetch(`${origin}/servers`, { headers: { authorization: `Bearer ${token}` } })).status

/** The part of both versions' clients that the tests use. */
interface McpSession {
  callTool(call: {
    name: string
    arguments: Record<string, unknown>
  }): Promise<{ structuredContent?: unknown }>
  close(): Promise<void>
}

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

  /** Takes a host through the flow until it has tokens. */
  const signIn = async (step: (typeof steps)[string], host: McpHost): Promise<void> => {
    expect(await step(host)).toBe('REDIRECT')
    const back = await visit(host.opened ?? '')
    const authorizationCode = back.searchParams.get('code') ?? ''
    const given = { authorizationCode, iss: back.searchParams.get('iss') ?? '' }
    expect(await step(host, given)).toBe('AUTHORIZED')
    host.opened = undefined
  }

  /** Connects a client that signs in by a host. */
  const connect: Record<string, (host: McpHost) => Promise<McpSession>> = {
    'version 2': async (host) => {
      const client = new v2.Client({ name: 'host', version: '1' })
      const options = { authProvider: host }
      await client.connect(new v2.StreamableHTTPClientTransport(new URL(`${origin}/mcp`), options))
      return client as McpSession
    },
    'version 1': async (host) => {
      const client = new ClientV1({ name: 'host', version: '1' })
      const options = { authProvider: host as unknown as v1.OAuthClientProvider }
      await client.connect(new TransportV1(new URL(`${origin}/mcp`), options) as never)
      return client as McpSession
    },
  }

  test.each(Object.keys(steps))(
    'of %s stay signed in when six calls find the token expired at once',
    async (version) => {
      const [step, open] = [steps[version], connect[version]]
      if (!step || !open) throw new Error('no such version')
      const host = new McpHost()
      await signIn(step, host)
      const client = await open(host)
      try {
        const call = () => client.callTool({ name: 'servers_list', arguments: {} })
        for (let hour = 0; hour < 2; hour += 1) {
          await berth.control('POST', '/clock', { advance: '61m' })
          const results = await Promise.all(Array.from({ length: 6 }, call))
          expect(results.map(({ structuredContent }) => structuredContent)).toEqual(
            Array.from({ length: 6 }, () => ({ servers: [] })),
          )
        }
        expect([host.forgotten, host.opened]).toEqual([[], undefined])
        expect(await reach(host.tokens()?.access_token ?? '')).toBe(200)
        expect(await step(host)).toBe('AUTHORIZED')
      } finally {
        await client.close()
      }
    },
  )

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
