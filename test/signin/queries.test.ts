import { describe, expect, test } from 'bun:test'
import { berthForTests } from '../support/berth.ts'
import { linkOf, Visitor } from '../support/visitor.ts'

const berth = await berthForTests()

/** Queries that would be read otherwise than they were sent, and what is said of them. */
const FAULTS = [
  ['return_to=%zz', 'is malformed'],
  ['return_to=%ff', 'is malformed'],
  ['done=%', 'is malformed'],
  ['return_to=/a&return_to=/b', 'is there twice'],
  ['done=x&do%6ee=x', 'is there twice'],
] as const

describe('a query that is malformed or has a parameter twice', () => {
  test.each([
    '/signin',
    '/cli/authorize',
    '/access',
    '/access/keys/key_x/delete',
    '/',
    '/dashboard/servers',
    '/dashboard',
  ])('is a page that names it, with 400, at %s', async (path) => {
    for (const visitor of [new Visitor(berth.info.base_url), await Visitor.of(berth)]) {
      for (const [query, fault] of FAULTS) {
        const page = await visitor.get(`${path}?${query}`)
        expect([query, page.status, page.location]).toEqual([query, 400, null])
        expect(page.headers.get('content-type')).toStartWith('text/html')
        expect(page.text).toContain(fault)
      }
    }
  })

  test('uses no link up, signs nobody in, and signs nobody out', async () => {
    const url = await linkOf(berth)
    const visitor = new Visitor(berth.info.base_url)
    expect((await visitor.get(`${url}?x=%zz`)).status).toBe(400)
    const signIn = { api_key: berth.info.api_key }
    expect((await visitor.post('/signin?x=1&x=2', signIn)).status).toBe(400)
    expect(visitor.cookie).toBe('')
    expect((await visitor.get(url)).status).toBe(303)
    expect((await visitor.submit('/signout?x=%')).status).toBe(400)
    expect((await visitor.get('/access')).status).toBe(200)
  })

  test('approves no key for a terminal', async () => {
    const visitor = await Visitor.of(berth)
    const asked = { challenge: 'a'.repeat(43), host: 'a machine' }
    const page = await visitor.get(`/cli/authorize?${new URLSearchParams(asked)}`)
    expect(page.status).toBe(200)
    const approved = { ...asked, decision: 'approve' }
    expect((await visitor.submit('/cli/authorize?host=a&host=b', approved)).status).toBe(400)
    expect((await visitor.submit('/cli/authorize', approved)).status).toBe(200)
  })

  test.each([
    ['POST', '/oauth/token', 'invalid_request'],
    ['POST', '/oauth/register', 'invalid_request'],
    ['POST', '/oauth/revoke', 'invalid_request'],
    ['POST', '/cli/token', 'bad_request'],
    ['GET', '/.well-known/oauth-authorization-server', 'bad_request'],
    ['GET', '/.well-known/oauth-protected-resource/mcp', 'bad_request'],
  ])('is an error that programs read: %s %s', async (method, path, error) => {
    for (const [query, fault] of FAULTS) {
      const response = await fetch(`${berth.info.base_url}${path}?${query}`, { method })
      expect([query, response.status]).toEqual([query, 400])
      const body = (await response.json()) as { error: string }
      expect(body.error).toBe(error)
      expect(Object.values(body).join()).toContain(fault)
    }
  })

  test('changes nothing about others: a well-formed query leads on as before', async () => {
    const page = await new Visitor(berth.info.base_url).get('/access?done=a%20b&x=%C3%BC&y=100%25')
    const returnTo = '/access?done=a%20b&x=%C3%BC&y=100%25'
    expect(page.location).toBe(`/signin?${new URLSearchParams({ return_to: returnTo })}`)
  })
})
