import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestBerth, testBerth } from '../support/berth.ts'
import { run } from './command.ts'
import { dataFolder, newPerson, type Person, signIn } from './sign-in.ts'

/** Two instances, of which each knows its own keys alone. */
let one: TestBerth
let two: TestBerth
let marks: { one: string; two: string }
beforeAll(async () => {
  ;[one, two] = await Promise.all([testBerth(), testBerth()])
  marks = { one: await one.server(), two: await two.server() }
})
afterAll(async () => {
  await one[Symbol.asyncDispose]()
  await two[Symbol.asyncDispose]()
})

/** Which instance a command of a person talks to, by the server that it lists. */
async function asked(person: Person, args: string[] = [], env: Record<string, string> = {}): Promise<string> {
  const { stdout, stderr } = await person.run(['servers', '--json', ...args], env)
  if (stdout === '') return stderr
  const [server] = JSON.parse(stdout).servers
  return server?.id === marks.one ? 'one' : server?.id === marks.two ? 'two' : 'neither'
}

describe('which instance a command talks to', () => {
  let person: Person
  beforeAll(async () => {
    person = newPerson()
    await signIn(person, two.info)
    await signIn(person, one.info)
  })
  afterAll(() => person[Symbol.dispose]())

  test('without anything else it is the one that was signed in to last', async () => {
    expect(await asked(person)).toBe('one')
  })

  test('--switch chooses another that is remembered, without a browser', async () => {
    const to = (berth: TestBerth) => person.run(['login', berth.info.base_url, '--switch'])
    expect((await to(two)).stdout).toBe(`${two.info.base_url} is the current instance.\n`)
    expect(await asked(person)).toBe('two')
    await to(one)
    expect(await asked(person)).toBe('one')
  })

  test('a URL that is given has its own remembered key, however it is written', async () => {
    const { base_url } = two.info
    expect(await asked(person, ['--base-url', base_url])).toBe('two')
    expect(await asked(person, ['--base-url', `${base_url.toUpperCase()}/`])).toBe('two')
    expect(await asked(person, [], { BERTH_BASE_URL: base_url })).toBe('two')
  })

  test('flags beat the environment, that beats the data folder, that beats a login', async () => {
    const { base_url, api_key } = two.info
    expect(await asked(person, ['--base-url', base_url, '--api-key', 'sk_live_wrong_key'])).toContain(
      'missing_or_invalid_api_key',
    )
    expect(await asked(person, ['--base-url', base_url], { BERTH_API_KEY: 'sk_live_wrong_key' })).toContain(
      'missing_or_invalid_api_key',
    )
    const cwd = join(person.cwd, 'project')
    dataFolder(cwd, two)
    const { stdout } = await run(['servers', '--json'], { cwd, env: person.env })
    expect(JSON.parse(stdout).servers[0].id).toBe(marks.two)
    expect(await asked(person, ['--base-url', base_url, '--api-key', api_key])).toBe('two')
  })

  test('a remembered key goes to no URL but its own; localhost leads to 127.0.0.1', async () => {
    const seen: (string | null)[] = []
    await using other = Bun.serve({
      port: 0,
      fetch(request) {
        seen.push(request.headers.get('authorization'))
        return Response.json({ servers: [] })
      },
    })
    for (const url of [
      other.url.origin,
      other.url.origin.replace('127.0.0.1', 'localhost'),
      `${one.info.base_url}/below`,
    ]) {
      const said = await asked(person, ['--base-url', url])
      expect(said).toContain(`No API key for ${url}. `)
      expect(said).toContain(`or run "berth login ${url}"`)
    }
    expect(seen).toEqual([])
    expect(await asked(person, ['--base-url', one.info.base_url.replace('127.0.0.1', 'localhost')])).toBe(
      'one',
    )
  })

  test('a key that is given without a URL is sent to no instance that was signed in to', async () => {
    for (const [args, env] of [
      [['--api-key', 'sk_live_of_another'], {}],
      [[], { BERTH_API_KEY: 'sk_live_of_another' }],
    ] as const)
      expect(await asked(person, [...args], env)).toContain('No berth runs on')
  })

  test('a key without a URL is named as why the login is not used, with what helps', async () => {
    const { base_url } = one.info
    const whoami = await person.run(['whoami'], { BERTH_API_KEY: 'sk_live_wrong' })
    expect([whoami.exitCode, whoami.stdout]).toEqual([1, ''])
    expect(whoami.stderr).toEndWith(
      `, and BERTH_API_KEY does not say which instance it is for. Name that with BERTH_BASE_URL or --base-url. With it the login at ${base_url} is not used: to use that, unset it.\n`,
    )
    const { stderr } = await person.run(['servers', '--api-key', 'sk_live_wrong'])
    expect(stderr).toContain('--api-key does not say which instance it is for. Name that with --base-url.')
    expect(stderr).toContain(`the login at ${base_url} is not used: to use that, leave it out.`)
    using nobody = newPerson()
    const without = await nobody.run(['servers'], { BERTH_API_KEY: 'sk_live_wrong' })
    expect(without.stderr).toEndWith('Name that with BERTH_BASE_URL or --base-url.\n')
  })

  test('a data folder that is named has to have an instance', async () => {
    expect(await asked(person, ['--data', join(person.cwd, 'none')])).toContain('No berth runs on')
    expect(await asked(person, [], { BERTH_DATA: join(person.cwd, 'none') })).toContain(
      `No berth runs on ${join(person.cwd, 'none')}, which BERTH_DATA names. Start one`,
    )
  })

  test('the control API is not opened by a sign-in', async () => {
    const { exitCode, stderr } = await person.run(['accounts'])
    expect(exitCode).toBe(1)
    expect(stderr).toContain('No berth runs on')
    expect(stderr).toContain(`the login at ${one.info.base_url} does not open this: it takes the admin token`)
    const named = await person.run(['accounts', '--base-url', one.info.base_url])
    expect(named.stderr).toContain('No admin token for')
    expect(named.stderr).toContain('or name its data directory with --data: "berth list" shows it')
  })

  test('TAB offers the instances that are remembered', async () => {
    const offered = async (...words: string[]) =>
      (await person.run(['__complete', 'fish', '--', ...words])).stdout.split('\n').slice(1, -1)
    const label = person.kept().instances[one.info.base_url].label
    const both = [two, one].map(({ info }) => `${info.base_url}\t${label}`)
    expect(await offered('logout', '')).toEqual(both)
    expect(await offered('login', one.info.base_url.slice(0, -1))).toContain(`${one.info.base_url}\t${label}`)
    expect(await offered('servers', 'list', '--base-url', 'http://')).toEqual(both)
    expect(await offered('servers', 'list', '--base-url=http://')).toEqual(
      both.map((line) => `--base-url=${line}`),
    )
    expect(await offered('webhooks', 'create', '')).toEqual([])
    // Bash takes the word apart at its colon.
    const { stdout } = await person.run(['__complete', 'bash', '--', 'logout', 'http', ':', '//127'])
    expect(stdout).toContain(`\n//127.0.0.1:${new URL(one.info.base_url).port}\t`)
  })
})

describe('berth logout', () => {
  const keyIds = async ({ call }: TestBerth): Promise<string[]> =>
    (await call('GET', '/keys')).body.keys.map(({ id }: { id: string }) => id)

  test('deletes the key on the instance and forgets it, and makes no other the current one', async () => {
    using person = newPerson()
    await signIn(person, two.info)
    await signIn(person, one.info)
    const { key_id } = person.kept().instances[one.info.base_url]
    const { exitCode, stdout } = await person.run(['logout'])
    expect({ exitCode, stdout }).toEqual({
      exitCode: 0,
      stdout: `Signed out of ${one.info.base_url}. The key is deleted there.\n`,
    })
    expect(await keyIds(one)).not.toContain(key_id)
    expect(person.kept()).toMatchObject({ current: null, instances: { [two.info.base_url]: {} } })
    expect(await asked(person)).toContain(
      `You are signed in to ${two.info.base_url}: choose with "berth login --switch URL".`,
    )
    expect((await person.run(['logout'])).stderr).toContain(
      `None of the instances that you are signed in to is the current one. Name the one that is meant: ${two.info.base_url}.`,
    )
    expect((await person.run(['logout', two.info.base_url])).exitCode).toBe(0)
    expect((await person.run(['logout'])).stderr).toContain('You are signed in to no instance.')
  })

  test('--all signs out everywhere, also where nothing answers or the key is not known', async () => {
    using person = newPerson()
    await signIn(person, one.info)
    await signIn(person, two.info)
    const kept = person.kept()
    const gone = 'http://127.0.0.1:1'
    await two.call('DELETE', `/keys/${kept.instances[two.info.base_url].key_id}`)
    kept.instances[gone] = kept.instances[two.info.base_url]
    writeFileSync(person.path, JSON.stringify(kept))
    const { exitCode, stdout } = await person.run(['logout', '--all'])
    expect(exitCode).toBe(0)
    expect(stdout).toContain(`Signed out of ${one.info.base_url}. The key is deleted there.\n`)
    expect(stdout).toContain(`Signed out of ${two.info.base_url}. It did not know the key any more.\n`)
    expect(stdout).toContain(`Signed out of ${gone}. It cannot be reached: the key is forgotten here`)
    expect(person.kept()).toEqual({ current: null, instances: {} })
    expect((await person.run(['logout', '--all'])).stdout).toBe('You are signed in to no instance.\n')
  })

  test('--json shows which ones, and the result for each key', async () => {
    using person = newPerson()
    expect((await person.run(['logout', '--all', '--json'])).stdout).toBe('{"signed_out":[]}\n')
    await signIn(person, one.info)
    await signIn(person, two.info)
    const { instances } = person.kept()
    const [first, second] = [one, two].map(({ info }) => ({
      base_url: info.base_url,
      key_id: instances[info.base_url].key_id,
    }))
    await two.call('DELETE', `/keys/${second?.key_id}`)
    const { exitCode, stdout } = await person.run(['logout', '--all', '--json'])
    expect(exitCode).toBe(0)
    expect(JSON.parse(stdout)).toEqual({
      signed_out: [
        { ...first, key: 'deleted' },
        { ...second, key: 'unknown' },
      ],
    })
  })

  test('keeps the last key that reaches the whole account, and says what to do', async () => {
    await using berth = await testBerth()
    using person = newPerson()
    await signIn(person, berth.info)
    const { base_url, api_key } = berth.info
    const { key_id } = person.kept().instances[base_url]
    const all = await keyIds(berth)
    for (const id of all.filter((id) => id !== key_id)) await berth.call('DELETE', `/keys/${id}`)
    expect(
      (await fetch(`${base_url}/keys`, { headers: { authorization: `Bearer ${api_key}` } })).status,
    ).toBe(401)
    const { exitCode, stderr } = await person.run(['logout'])
    expect(exitCode).toBe(1)
    expect(stderr).toContain(
      `${base_url} keeps the key ${key_id}: it is the last one that reaches the whole account.`,
    )
    expect(stderr).toContain(`Make another with "berth keys create LABEL --base-url ${base_url}"`)
    expect(person.kept().current).toBe(base_url)
    expect((await person.run(['keys', 'create', 'another', '--base-url', base_url])).exitCode).toBe(0)
    expect((await person.run(['logout'])).exitCode).toBe(0)
  })

  test('of a key that was limited says that it stays valid', async () => {
    using person = newPerson()
    await signIn(person, one.info)
    const { key_id } = person.kept().instances[one.info.base_url]
    await one.call('PATCH', `/keys/${key_id}`, { allowed_server_ids: [marks.one] })
    const { exitCode, stdout } = await person.run(['logout'])
    expect(exitCode).toBe(0)
    expect(stdout).toContain('The key was limited and cannot delete itself')
    expect(await keyIds(one)).toContain(key_id)
    expect(person.kept().instances).toEqual({})
  })

  test('of an instance that is not known, and of one with --all, is refused', async () => {
    using person = newPerson()
    expect((await person.run(['logout', 'http://127.0.0.1:1'])).stderr).toBe(
      'berth: You are not signed in to http://127.0.0.1:1, nor to another instance.\n',
    )
    await signIn(person, one.info)
    expect((await person.run(['logout', 'http://127.0.0.1:1'])).stderr).toBe(
      `berth: You are not signed in to http://127.0.0.1:1, but to ${one.info.base_url}.\n`,
    )
    const both = await person.run(['logout', 'http://127.0.0.1:1', '--all'])
    expect({ exitCode: both.exitCode, stderr: both.stderr }).toEqual({
      exitCode: 2,
      stderr: 'berth: --all means every instance: leave out the URL.\n',
    })
  })
})
