import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { type TestBerth, testBerth } from '../support/berth.ts'

const SERVER = '/.well-known/oauth-authorization-server'
const RESOURCE = '/.well-known/oauth-protected-resource'

describe('OAuth metadata', () => {
  let berth: TestBerth
  let origins: string[]
  beforeAll(async () => {
    berth = await testBerth()
    const { port } = new URL(berth.info.base_url)
    origins = [`http://127.0.0.1:${port}`, `http://localhost:${port}`]
  })
  afterAll(() => berth[Symbol.asyncDispose]())

  const read = async (url: string) => {
    const response = await fetch(url)
    expect({ url, status: response.status, type: response.headers.get('content-type') }).toEqual({
      url,
      status: 200,
      type: expect.stringContaining('application/json'),
    })
    return (await response.json()) as Record<string, unknown>
  }

  test('the server says of itself, to everybody, what clients need, by the name under which it was asked', async () => {
    for (const origin of origins) {
      for (const path of [SERVER, `${SERVER}/mcp`]) {
        expect(await read(`${origin}${path}`)).toMatchObject({
          issuer: origin,
          authorization_endpoint: `${origin}/oauth/authorize`,
          token_endpoint: `${origin}/oauth/token`,
          registration_endpoint: `${origin}/oauth/register`,
          revocation_endpoint: `${origin}/oauth/revoke`,
          response_types_supported: ['code'],
          grant_types_supported: ['authorization_code', 'refresh_token'],
          code_challenge_methods_supported: ['S256'],
          token_endpoint_auth_methods_supported: ['none', 'client_secret_post', 'client_secret_basic'],
          authorization_response_iss_parameter_supported: true,
          request_parameter_supported: false,
          request_uri_parameter_supported: false,
        })
      }
    }
  })

  test('each resource names itself as it was asked for, and who issues its tokens', async () => {
    for (const origin of origins) {
      const common = { authorization_servers: [origin], bearer_methods_supported: ['header'] }
      expect(await read(`${origin}${RESOURCE}`)).toMatchObject({ resource: origin, ...common })
      expect(await read(`${origin}${RESOURCE}/mcp`)).toMatchObject({ resource: `${origin}/mcp`, ...common })
    }
  })

  test('the description of the API lists nothing of it', async () => {
    const { paths } = (await read(`${berth.info.base_url}/openapi.json`)) as { paths: object }
    expect(Object.keys(paths).filter((path) => /oauth|well-known/.test(path))).toEqual([])
  })

  test('other methods and other paths are refused', async () => {
    const status = async (method: string, path: string) =>
      (await fetch(`${berth.info.base_url}${path}`, { method })).status
    expect(await status('POST', SERVER)).toBe(405)
    expect(await status('GET', '/oauth/token')).toBe(405)
    expect(await status('GET', '/.well-known/openid-configuration')).toBe(404)
    expect(await status('GET', `${RESOURCE}/elsewhere`)).toBe(404)
  })
})
