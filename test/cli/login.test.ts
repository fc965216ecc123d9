import { describe, expect, test } from 'bun:test'
import { existsSync, mkdirSync, statSync } from 'node:fs'
import { hostname } from 'node:os'
import { dirname } from 'node:path'
import { signInBrowser } from '../signin/browser-session.ts'
import { berthForTests } from '../support/berth.ts'
import { command } from '../support/serve.ts'
import { codeAt, decideAt, desktopOf, newPerson, signIn, startLogin } from './sign-in.ts'
import { onTerminal } from './terminal.ts'

const berth = await berthForTests({ flags: { 'log-level': 'debug' } })
const url = berth.info.base_url
const browser = await signInBrowser(url, berth.info.api_key)

const keysOf = async (): Promise<{ id: string; label: string }[]> =>
  (await berth.call('GET', '/keys')).body.keys

describe('berth login with a browser', () => {
  test('opens it, takes the code that it comes back with and keeps a key of its own', async () => {
    using person = newPerson()
    const { env, opened } = desktopOf(person)
    await using login = startLogin([url], person, env)
    const page = await login.page()
    const sent = await decideAt(page, browser, 'approve')
    const back = await fetch(sent.headers.get('location') ?? '')
    expect(back.status).toBe(200)
    expect(await back.text()).toContain('<h1>You are signed in</h1>')
    expect(back.headers.get('content-security-policy')).toContain("default-src 'none'")
    expect(back.headers.get('referrer-policy')).toBe('no-referrer')
    expect(back.headers.get('cache-control')).toBe('no-store')
    const { exitCode, stdout } = await login.ended
    expect(exitCode).toBe(0)
    expect(await opened()).toBe(page.href)

    const { current, instances } = person.kept()
    expect(current).toBe(url)
    const { api_key, key_id, account_id, label, created_at } = instances[url]
    expect(api_key).toStartWith('sk_live_')
    expect(label).toBe(Array.from(`CLI on ${hostname()}`).length <= 40 ? `CLI on ${hostname()}` : label)
    expect(stdout).toBe(
      `Signed in to ${url}.\nAccount  ${account_id}\nKey      ${label} (${key_id})\nKept in  ${person.path}\n`,
    )
    expect(Date.parse(created_at)).toBeGreaterThan(0)
    expect((await keysOf()).find(({ id }) => id === key_id)).toMatchObject({ label })
    const used = await fetch(`${url}/keys`, { headers: { authorization: `Bearer ${api_key}` } })
    expect(used.status).toBe(200)
  })

  test('says that it was denied, and ends with 1', async () => {
    using person = newPerson()
    await using login = startLogin([url], person, desktopOf(person).env)
    const sent = await decideAt(await login.page(), browser, 'deny')
    const back = await fetch(sent.headers.get('location') ?? '')
    expect(await back.text()).toContain('<h1>Denied</h1>')
    const { exitCode, stdout, stderr } = await login.ended
    expect({ exitCode, stdout }).toEqual({ exitCode: 1, stdout: '' })
    expect(stderr).toEndWith('berth: It was denied in the browser; nothing was changed.\n')
    expect(person.kept()).toBeNull()
  })

  test('exchanges nothing for a wrong state, and goes on waiting', async () => {
    using person = newPerson()
    await using login = startLogin([url], person, desktopOf(person).env)
    const page = await login.page()
    const port = page.searchParams.get('redirect_port')
    const state = page.searchParams.get('state') ?? ''
    const before = (await berth.wholeLog()).split('/cli/token').length
    const call = `http://127.0.0.1:${port}`
    const attempts: [path: string, init: RequestInit, status: number][] = [
      ['/callback?code=AAAA-BBBB-CCCC', {}, 400],
      [`/callback?code=AAAA-BBBB-CCCC&state=${'x'.repeat(43)}`, {}, 400],
      [`/callback?error=access_denied&state=${state.slice(1)}`, {}, 400],
      [`/callback?state=${state}`, {}, 400],
      [`/callback?code=AAAA-BBBB-CCCC&state=${state}`, { method: 'POST' }, 405],
      [`/callback?code=AAAA-BBBB-CCCC&state=${state}`, { headers: { host: 'rebound.example' } }, 403],
      [`/other?code=AAAA-BBBB-CCCC&state=${state}`, {}, 404],
    ]
    for (const [path, init, status] of attempts) {
      const answer = await fetch(`${call}${path}`, init)
      expect({ path, status: answer.status }).toEqual({ path, status })
      expect(await answer.text()).not.toContain('signed in</h1>')
    }
    expect((await berth.wholeLog()).split('/cli/token')).toHaveLength(before)
    const sent = await decideAt(page, browser, 'approve')
    expect((await fetch(sent.headers.get('location') ?? '')).status).toBe(200)
    expect((await login.ended).exitCode).toBe(0)
  })

  test('a code that is not of this terminal signs nobody in, and the page says so', async () => {
    using person = newPerson()
    await using login = startLogin([url], person, desktopOf(person).env)
    const page = await login.page()
    const [port, state] = [page.searchParams.get('redirect_port'), page.searchParams.get('state')]
    const back = await fetch(`http://127.0.0.1:${port}/callback?code=AAAA-BBBB-CCCC&state=${state}`)
    expect(await back.text()).toContain('<h1>You are not signed in</h1>')
    const { exitCode, stderr } = await login.ended
    expect(exitCode).toBe(1)
    expect(stderr).toContain('berth: The code is not valid')
    expect(person.kept()).toBeNull()
    await berth.control('POST', '/clock', { advance: '2m' })
  })

  test('a browser that cannot be opened is replaced by a code that is typed in', async () => {
    using person = newPerson()
    await using login = startLogin([url], person, desktopOf(person, 3).env)
    await login.says('The browser could not be opened.\nOpen this address in a browser, approve')
    const page = await login.page()
    expect(page.searchParams.has('redirect_port')).toBe(false)
    login.type(await codeAt(page, browser))
    expect((await login.ended).exitCode).toBe(0)
    expect(person.kept().current).toBe(url)
  })

  test('on a machine without a screen the code is typed in at once', async () => {
    using person = newPerson()
    await using login = startLogin([url], person)
    const page = await login.page()
    expect([...page.searchParams.keys()]).toEqual(['challenge', 'host'])
    login.type(await codeAt(page, browser))
    expect((await login.ended).exitCode).toBe(0)
  })

  test.each(['SIGINT', 'SIGTERM'] as const)('%s ends it, and nothing listens any more', async (signal) => {
    using person = newPerson()
    await using login = startLogin([url], person, desktopOf(person).env)
    const port = (await login.page()).searchParams.get('redirect_port')
    login.kill(signal)
    const { exitCode, stdout } = await login.ended
    expect({ exitCode, stdout }).toEqual({ exitCode: signal === 'SIGINT' ? 130 : 143, stdout: '' })
    await expect(fetch(`http://127.0.0.1:${port}/callback`)).rejects.toThrow()
    expect(person.kept()).toBeNull()
  })
})

describe('berth login --no-browser', () => {
  test('on a terminal asks for the code, again where it was mistyped', async () => {
    using person = newPerson()
    await using terminal = onTerminal([...command, 'login', url, '--no-browser'], person)
    await terminal.shows('Code: ')
    const address = /(http:\S+\/cli\/authorize\S+)/.exec(terminal.output())?.[1] ?? ''
    terminal.type('not-the-code\r')
    await terminal.shows(/This code is not valid[\s\S]*Code: /)
    terminal.type(`${(await codeAt(new URL(address), browser)).toLowerCase()}\r`)
    expect(await terminal.exited).toBe(0)
    expect(terminal.output()).toContain(`Signed in to ${url}.`)
    await berth.control('POST', '/clock', { advance: '2m' })
  })

  test.each([
    ['with its end', (code: string) => [`${code}\r`]],
    ['after an impatient Enter', (code: string) => ['\r', `${code}\r`]],
    ['in parts, of which the last comes at the prompt', (code: string) => [code.slice(0, 5), code.slice(5)]],
  ])('what was typed before the prompt counts, %s', async (_how, parts) => {
    using person = newPerson()
    await using terminal = onTerminal([...command, 'login', url, '--no-browser'], person)
    await terminal.shows(/cli\/authorize\S+\s/)
    const address = /(http:\S+\/cli\/authorize\S+)/.exec(terminal.output())?.[1] ?? ''
    // As if its prompt took its time.
    process.kill(terminal.pid, 'SIGSTOP')
    const code = await codeAt(new URL(address), browser)
    const [before = '', after] = parts(code)
    terminal.type(before)
    process.kill(terminal.pid, 'SIGCONT')
    if (after !== undefined) {
      await terminal.shows('Code: ')
      terminal.type(after.endsWith('\r') ? after : `${after}\r`)
    }
    expect(await terminal.exited).toBe(0)
    expect(terminal.output()).toContain(`Signed in to ${url}.`)
  })

  test('Ctrl-C at the prompt ends it', async () => {
    using person = newPerson()
    await using terminal = onTerminal([...command, 'login', url, '--no-browser'], person)
    await terminal.shows('Code: ')
    terminal.type('\u0003')
    expect(await terminal.exited).toBe(130)
  })

  test('without a code on standard input says so', async () => {
    using person = newPerson()
    const { exitCode, stderr } = await person.run(['login', url, '--no-browser'])
    expect(exitCode).toBe(1)
    expect(stderr).toEndWith('berth: No code was given; nothing was changed. Run "berth login" again.\n')
  })

  test('a code that has expired by the clock signs nobody in', async () => {
    using person = newPerson()
    await using login = startLogin([url, '--no-browser'], person)
    const code = await codeAt(await login.page(), browser)
    await berth.control('POST', '/clock', { advance: '2m' })
    login.type(code)
    const { exitCode, stderr } = await login.ended
    expect(exitCode).toBe(1)
    expect(stderr).toContain('is over two minutes old')
    expect(stderr).toEndWith('signed out.\n')
    await berth.control('POST', '/clock', { advance: '2m' })
  })

  test('--label names the key, --json describes it without showing it', async () => {
    using person = newPerson()
    const { stdout } = await signIn(person, berth.info, ['--label', 'my <laptop>', '--json'])
    const { api_key, ...told } = person.kept().instances[url]
    expect(JSON.parse(stdout)).toEqual({ base_url: url, ...told, kept_in: person.path })
    expect(told.label).toBe('my <laptop>')
  })
})

test('the key shows nowhere but in the file: no output, no address, no argument, no log', async () => {
  using person = newPerson()
  const { env, opened } = desktopOf(person)
  await using login = startLogin([url], person, env)
  const page = await login.page()
  const sent = await decideAt(page, browser, 'approve')
  const words = (await Bun.file(`/proc/${login.pid}/cmdline`).text()).replaceAll('\0', ' ')
  const location = sent.headers.get('location') ?? ''
  const back = await (await fetch(location)).text()
  const { stdout, stderr } = await login.ended
  const { api_key } = person.kept().instances[url]
  for (const seen of [
    stdout,
    stderr,
    words,
    page.href,
    location,
    back,
    await opened(),
    await berth.wholeLog(),
  ])
    expect(seen).not.toContain(api_key)
})

test('the file and its folder are open to their owner alone', async () => {
  using person = newPerson()
  mkdirSync(dirname(person.path), { recursive: true, mode: 0o755 })
  await signIn(person, berth.info)
  expect(statSync(person.path).mode & 0o777).toBe(0o600)
  expect(statSync(dirname(person.path)).mode & 0o777).toBe(0o700)
})

test('signing in again replaces the key: the one of before opens nothing any more', async () => {
  using person = newPerson()
  await signIn(person, berth.info)
  const before = person.kept().instances[url]
  await signIn(person, berth.info)
  const after = person.kept().instances[url]
  expect(after.key_id).not.toBe(before.key_id)
  const ids = (await keysOf()).map(({ id }) => id)
  expect(ids).toContain(after.key_id)
  expect(ids).not.toContain(before.key_id)
})

test('of two sign-ins at a time one key stays', async () => {
  using person = newPerson()
  const before = (await keysOf()).length
  await using one = startLogin([url, '--no-browser'], person)
  await using other = startLogin([url, '--no-browser'], person)
  const codes = [await codeAt(await one.page(), browser), await codeAt(await other.page(), browser)]
  one.type(codes[0] ?? '')
  expect((await one.ended).exitCode).toBe(0)
  other.type(codes[1] ?? '')
  expect((await other.ended).exitCode).toBe(0)
  const ids = (await keysOf()).map(({ id }) => id)
  expect(ids).toContain(person.kept().instances[url].key_id)
  expect(ids).toHaveLength(before + 1)
})

test('says so where commands use a key of the environment, or another instance, in place of the login', async () => {
  using person = newPerson()
  const told = async (env: Record<string, string>) =>
    (await signIn({ ...person, env: { ...person.env, ...env } }, berth.info)).stderr
  const key = 'BERTH_API_KEY is set here: commands use that key, and not this login, until you unset it.\n'
  expect(await told({})).not.toContain('BERTH_')
  expect(await told({ BERTH_API_KEY: 'sk_live_x' })).toEndWith(key)
  expect(await told({ BERTH_API_KEY: 'sk_live_x', BERTH_BASE_URL: url })).toEndWith(key)
  expect(await told({ BERTH_API_KEY: 'sk_live_x', BERTH_BASE_URL: 'http://127.0.0.1:1' })).toEndWith(
    `Commands here still talk to http://127.0.0.1:1: BERTH_BASE_URL says so. Name this one with --base-url ${url}\n`,
  )
})

test('a key that cannot be kept is deleted again', async () => {
  using person = newPerson()
  await using login = startLogin([url, '--no-browser'], person)
  const code = await codeAt(await login.page(), browser)
  const before = (await keysOf()).length
  // Something else has taken its place.
  mkdirSync(`${person.path}.new/x`, { recursive: true })
  login.type(code)
  const { exitCode, stderr } = await login.ended
  expect(exitCode).toBe(1)
  expect(stderr).toContain(`berth: ${person.path} cannot be written: `)
  expect(await keysOf()).toHaveLength(before)
  expect(existsSync(person.path)).toBe(false)
})

const REFUSED: [name: string, args: string[], exitCode: number, message: string][] = [
  ['nothing that runs or is named', [], 1, 'Say which instance is meant: berth login http://'],
  ['an address that is none', ['berth.example:4747'], 2, 'The base URL must look like http://127.0.0.1:4747'],
  ['a password in the address', ['http://a:b@127.0.0.1:4747'], 2, 'must have no user, password'],
  [
    'the address of a page',
    ['http://127.0.0.1:1/mcp'],
    2,
    'The address of an instance has no path: /mcp leads to one of its pages. Run "berth login http://127.0.0.1:1".\n',
  ],
  ['an address at which nothing answers', ['http://127.0.0.1:1'], 1, 'Nothing answers at http://127.0.0.1:1'],
  ['a label that is too long', ['--label', 'x'.repeat(41)], 2, 'expected 1 to 40 characters, got 41'],
  ['an empty label', ['--label', ' '], 2, 'expected 1 to 40 characters, got 0'],
  [
    'a switch to an unknown one',
    ['http://127.0.0.1:1', '--switch'],
    1,
    'You are not signed in to http://127.0.0.1:1',
  ],
]

test.each(REFUSED)('%s is refused before any browser opens', async (_name, args, exitCode, message) => {
  using person = newPerson()
  const { env, path } = desktopOf(person)
  const outcome = await person.run(['login', ...args], env)
  expect({ exitCode: outcome.exitCode, stdout: outcome.stdout }).toEqual({ exitCode, stdout: '' })
  expect(outcome.stderr).toContain(message)
  expect(existsSync(path)).toBe(false)
})

test('reports an address that is not berth, and sends nobody there', async () => {
  using person = newPerson()
  const { env, path } = desktopOf(person)
  await using other = Bun.serve({ port: 0, fetch: () => new Response('<html>', { status: 404 }) })
  const { exitCode, stderr } = await person.run(['login', other.url.href], env)
  expect(exitCode).toBe(1)
  expect(stderr).toContain("does not speak berth's API (HTTP 404)")
  expect(existsSync(path)).toBe(false)
})

test.each([{}, { key: 'sk_live_x' }, null, 'text'])(
  'an answer without a whole key, %j, changes nothing that is kept',
  async (answer) => {
    using person = newPerson()
    await signIn(person, berth.info)
    const kept = person.kept()
    const refused = { error: 'bad_request', message: 'No code came.' }
    await using other = Bun.serve({
      port: 0,
      fetch: async (request) =>
        'code' in ((await request.json()) as object)
          ? Response.json(answer, { status: 201 })
          : Response.json(refused, { status: 400 }),
    })
    await using login = startLogin([other.url.href, '--no-browser'], person)
    await login.page()
    login.type('AAAA-BBBB-CCCC')
    const { exitCode, stderr } = await login.ended
    expect(exitCode).toBe(1)
    expect(stderr).toContain('gave no key as berth does. Check the address.')
    expect(person.kept()).toEqual(kept)
  },
)
