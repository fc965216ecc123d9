import { Database } from 'bun:sqlite'
import { describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import { browserName, destinationsOf } from '../../src/signin/access/api.ts'
import { berthForTests } from '../support/berth.ts'
import { accessToken, registerClient } from '../support/oauth.ts'
import { Visitor } from '../support/visitor.ts'

const berth = await berthForTests()

/** Lets a client in to the first account, by the whole flow. @returns its access token, and the id of the grant */
async function letIn(name: string, servers: string[] = []): Promise<{ token: string; id: string }> {
  const metadata = {
    client_name: name,
    redirect_uris: ['http://127.0.0.1:33418/callback', 'https://vscode.dev/redirect'],
  }
  const client = await registerClient(berth.info.base_url, metadata)
  const token = await accessToken(berth, { client, servers })
  const { text } = await (await Visitor.of(berth)).get('/access')
  return { token, id: /\/access\/clients\/(\w+)\/revoke/.exec(text)?.[1] ?? '' }
}

const firstAccount = async (): Promise<string> =>
  (await berth.control('GET', '/accounts')).body.accounts.at(-1).id

describe('/access', () => {
  test('says who is signed in, and lists the keys without showing them', async () => {
    const server = await berth.server()
    const { body: key } = await berth.call('POST', '/keys', {
      label: '<b>CI</b> & "more"',
      allowed_server_ids: [server],
    })
    const { text } = await (await Visitor.of(berth)).get('/access')
    expect(text).toContain('First account')
    expect(text).toContain(await firstAccount())
    expect(text).toContain('&lt;b&gt;CI&lt;/b&gt; &amp; &quot;more&quot;')
    expect(text).not.toContain('<b>CI')
    expect(text).toContain(key.masked)
    expect(text).toContain(`server <code>${server}</code> with all projects there`)
    expect(text).toContain('the whole account')
    expect(text).not.toContain(key.key)
    expect(text).not.toContain(berth.info.api_key)
  })

  test('calls what a key or a program is limited to by name, and says what is gone', async () => {
    const [shop, gone] = [await berth.server({ task: 'Shop <1>' }), await berth.server({ task: 'Old' })]
    const { body: made } = await berth.call('POST', `/servers/${shop}/projects`, { name: 'Till & co' })
    const reach = { allowed_server_ids: [shop, gone], allowed_project_ids: [made.id] }
    const { body: key } = await berth.call('POST', '/keys', { label: 'limited', ...reach })
    const { id } = await letIn('Limited program', [shop])
    await berth.call('DELETE', `/servers/${gone}`)
    const one = await Visitor.of(berth)
    const names =
      `servers “<bdi>Shop &lt;1&gt;</bdi>” <code>${shop}</code>, <code>${gone}</code> (gone), ` +
      `of projects there only project “<bdi>Till &amp; co</bdi>” <code>${made.id}</code>`
    const { text } = await one.get('/access')
    expect(text).toContain(names)
    expect(text).toContain(`server “<bdi>Shop &lt;1&gt;</bdi>” <code>${shop}</code> with all projects there`)
    expect((await one.get(`/access/keys/${key.id}/delete`)).text).toContain(names)
    await one.submit(`/access/keys/${key.id}/delete`)
    await one.submit(`/access/clients/${id}/revoke`)
  })

  test('shows a key to who asks for it by a form, and no address has it', async () => {
    const { body: key } = await berth.call('POST', '/keys', { label: 'shown' })
    const one = await Visitor.of(berth)
    const answer = await one.submit(`/access/keys/${key.id}/reveal`)
    expect([answer.status, answer.location]).toEqual([200, null])
    expect(answer.headers.get('cache-control')).toBe('no-store')
    expect(answer.text).toContain(key.key)
  })

  test('leads from the address of a key that was shown back to the list', async () => {
    const { body: key } = await berth.call('POST', '/keys', { label: 'shown again' })
    const answer = await (await Visitor.of(berth)).get(`/access/keys/${key.id}/reveal`)
    expect([answer.status, answer.location]).toEqual([303, '/access'])
    expect(answer.text).not.toContain(key.key)
  })

  test('says of a key without a copy that it has none', async () => {
    const { body: key } = await berth.call('POST', '/keys', { label: 'old' })
    using database = new Database(join(berth.dataDir, 'berth.db'))
    database.run('UPDATE api_keys SET cipher = NULL WHERE id = ?', [key.id])
    const { status, text } = await (await Visitor.of(berth)).submit(`/access/keys/${key.id}/reveal`)
    expect(status).toBe(200)
    expect(text).toContain('berth has no copy')
    expect(text).not.toContain(key.key)
  })

  test('deletes a key behind a page that asks once more', async () => {
    const { body: key } = await berth.call('POST', '/keys', { label: 'gone' })
    const one = await Visitor.of(berth)
    const asked = await one.get(`/access/keys/${key.id}/delete`)
    expect(asked.text).toContain('Delete the API key gone?')
    expect(asked.text).toContain(`<form method="post" action="/access/keys/${key.id}/delete">`)
    const answer = await one.submit(`/access/keys/${key.id}/delete`)
    expect([answer.status, answer.location]).toEqual([303, '/access?done=key-deleted'])
    const after = await one.get(answer.location ?? '')
    expect(after.text).toContain('<p class="notice" role="status">The key is deleted.')
    expect(after.text).not.toContain(key.id)
    const headers = { authorization: `Bearer ${key.key}` }
    expect((await berth.call('GET', '/servers', undefined, headers)).status).toBe(401)
    expect((await one.submit(`/access/keys/${key.id}/delete`)).status).toBe(404)
  })

  test('keeps the last key that reaches the whole account, and says why', async () => {
    const { body: account } = await berth.control('POST', '/accounts', { label: 'Ann' })
    const ann = await Visitor.of(berth, account.id)
    const { text } = await ann.get('/access')
    expect(text).toContain('it cannot be deleted')
    expect(text).not.toContain('/delete"')
    const id = /\/access\/keys\/([^/]+)\/reveal/.exec(text)?.[1] ?? ''
    const answer = await ann.submit(`/access/keys/${id}/delete`)
    expect(answer.status).toBe(400)
    expect(answer.text).toContain('is the last one that reaches the whole account and cannot be deleted')
    const headers = { authorization: `Bearer ${account.api_key}` }
    expect((await berth.call('GET', '/servers', undefined, headers)).status).toBe(200)
  })

  test('lists the clients that were let in, and lets none of them in any more by Revoke', async () => {
    const server = await berth.server()
    const one = await Visitor.of(berth)
    expect((await one.get('/access')).text).toContain('There are none. Point an MCP host')
    const { token, id } = await letIn('Editor & x', [server])
    const headers = { authorization: `Bearer ${token}` }
    expect((await berth.call('GET', '/servers', undefined, headers)).status).toBe(200)
    const { text } = await one.get('/access')
    expect(text).toContain('<strong><bdi>Editor &amp; x</bdi></strong>')
    expect(text).toMatch(/Answers go to this machine, vscode\.dev\. Client id <code>client_\w+<\/code>\./)
    expect(text).toContain(`server <code>${server}</code> with all projects there`)
    expect(text).toContain('last used')
    const answer = await one.submit(`/access/clients/${id}/revoke`)
    expect((await berth.call('GET', '/servers', undefined, headers)).status).toBe(401)
    expect((await one.get('/access')).text).not.toContain('Editor')
    const notice = /<p class="notice" role="status">(.*)<\/p>/
    const location = answer.location ?? ''
    expect(notice.exec((await one.get(location)).text)?.[1]).toBe(
      'The program “<bdi>Editor &amp; x</bdi>” is not let in any more.',
    )
    // Nobody else can have the page name what they like.
    const forged = [location.replace('Editor', 'Evil'), location.replace(/&proof=.*/, '')]
    for (const path of forged) {
      expect(notice.exec((await one.get(path)).text)?.[1]).toBe('The program is not let in any more.')
    }
    const other = await Visitor.of(berth)
    expect((await other.get(location)).text).not.toContain('Editor')
  })

  test('distinguishes programs that look the same by their address, their id and their letters', async () => {
    const origin = berth.info.base_url
    const names = ['Claude Code', '\u0421laude Code']
    const clients = await Promise.all(
      names.map((client_name, n) =>
        registerClient(origin, { client_name, redirect_uris: [`https://app${n}.example/callback`] }),
      ),
    )
    for (const client of clients) await accessToken(berth, { client })
    const { text } = await (await Visitor.of(berth)).get('/access')
    const rows = text.split('<li>').filter((row) => row.includes('laude Code'))
    expect(rows).toHaveLength(2)
    for (const [n, row] of rows.reverse().entries()) {
      expect(row).toContain(`Answers go to app${n}.example. Client id <code>${clients[n]?.client_id}</code>.`)
      expect(row.includes('mixes Latin and Cyrillic')).toBe(n === 1)
    }
  })

  test('shows which browsers have the rights of the instance', async () => {
    const [byLink, byKey] = [await Visitor.of(berth), new Visitor(berth.info.base_url)]
    await byKey.post('/signin', { api_key: berth.info.api_key })
    for (const [browser, mayControl] of [
      [byLink, true],
      [byKey, false],
    ] as const) {
      const [, own = ''] = (await browser.get('/access')).text.split('this one')
      expect((own.split('</li>')[0] ?? '').includes('May use the control API')).toBe(mayControl)
    }
  })

  test('lists the browsers that are signed in, marks this one, and signs the others out', async () => {
    const { body: account } = await berth.control('POST', '/accounts', { label: 'Ann' })
    const one = await Visitor.of(berth, account.id)
    const other = await Visitor.of(berth, account.id)
    const own = /browsers\/(\w+)\/signout/.exec(
      (await one.get('/access')).text.split('this one')[1] ?? '',
    )?.[1]
    const theirs = /browsers\/(\w+)\/signout/.exec(
      (await other.get('/access')).text.split('this one')[1] ?? '',
    )?.[1]
    expect(own).not.toBe(theirs)
    expect((await one.submit(`/access/browsers/${theirs}/signout`)).location).toBe(
      '/access?done=browser-signed-out',
    )
    expect((await other.get('/access')).status).toBe(303)
    const out = await one.submit(`/access/browsers/${own}/signout`)
    expect([out.location, one.cookie]).toEqual(['/signin?done=signed-out', ''])
  })

  test('what another account has is not there', async () => {
    const { body: account } = await berth.control('POST', '/accounts', { label: 'Ann' })
    const owner = await Visitor.of(berth)
    const { body: key } = await berth.call('POST', '/keys', { label: 'mine' })
    const { token, id } = await letIn('Mine')
    const session = /browsers\/(\w+)\/signout/.exec(
      (await owner.get('/access')).text.split('this one')[1] ?? '',
    )?.[1]
    const ann = await Visitor.of(berth, account.id)
    const page = (await ann.get('/access')).text
    for (const theirs of [key.id, id, session ?? 'none']) expect(page).not.toContain(theirs)
    for (const path of [
      `/access/keys/${key.id}/reveal`,
      `/access/keys/${key.id}/delete`,
      `/access/clients/${id}/revoke`,
      `/access/browsers/${session}/signout`,
    ]) {
      const answer = await ann.submit(path)
      expect(answer.status).toBe(404)
      expect(answer.text).not.toContain(key.key)
    }
    expect((await ann.get(`/access/keys/${key.id}/delete`)).status).toBe(404)
    expect((await owner.get('/access')).status).toBe(200)
    for (const credential of [key.key, token]) {
      const headers = { authorization: `Bearer ${credential}` }
      expect((await berth.call('GET', '/servers', undefined, headers)).status).toBe(200)
    }
  })

  test('an unknown address is a page to a browser, and an error as any other to a program', async () => {
    const one = await Visitor.of(berth)
    const page = await one.get('/access/none', { accept: 'text/html,application/xhtml+xml' })
    expect([page.status, page.headers.get('x-request-id')]).toEqual([404, expect.stringMatching(/^req_/)])
    expect(page.text).toContain('<h1>There is no such page</h1>')
    const answer = await one.get('/access/none')
    expect([answer.status, JSON.parse(answer.text).error]).toEqual([404, 'not_found'])
  })

  test('says nothing of its own of an address that somebody made up', async () => {
    const { text } = await (await Visitor.of(berth)).get('/access?done=%3Cb%3Ehacked&done=toString')
    expect(text).not.toContain('hacked')
    expect(text).not.toContain('role="status"')
  })
})

test.each([
  [
    ['http://127.0.0.1:33418/', 'http://localhost:1/x', 'https://vscode.dev/redirect'],
    'this machine, vscode.dev',
  ],
  [['http://[::1]:9/'], 'this machine'],
  [['cursor://anysphere.cursor-mcp/oauth/callback'], 'an app for cursor:// links'],
  [['https://127.0.0.1.evil.example/'], '127.0.0.1.evil.example'],
])('a client at %j lives at %j', (uris, place) => expect(destinationsOf(uris)).toBe(place))

test.each([
  ['Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0', 'Firefox on Linux'],
  [
    'Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36 Edg/140.0.0.0',
    'Edge on Windows',
  ],
  [
    'Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.0 Mobile/15E148 Safari/604.1',
    'Safari on iOS',
  ],
  ['curl/8.14.1', 'curl'],
  ['', 'Unknown browser'],
])('%j is called %j', (userAgent, name) => expect(browserName(userAgent)).toBe(name))
