import { afterAll, beforeAll, expect, test } from 'bun:test'
import { type TestBerth, testBerth } from '../support/berth.ts'
import { freePort } from '../support/ports.ts'
import { dataFolder, newPerson, signIn } from './sign-in.ts'

/** Two instances, of which each knows its own keys alone. */
let one: TestBerth
let two: TestBerth
beforeAll(async () => {
  ;[one, two] = await Promise.all([testBerth(), testBerth()])
})
afterAll(async () => {
  await one[Symbol.asyncDispose]()
  await two[Symbol.asyncDispose]()
})

test('prints instance, key, account and reach, and other remembered instances', async () => {
  using person = newPerson()
  await signIn(person, two.info)
  await signIn(person, one.info)
  const { exitCode, stdout } = await person.run(['whoami'])
  expect(exitCode).toBe(0)
  const { api_key, account_id, key_id, label } = person.kept().instances[one.info.base_url]
  expect(stdout).not.toContain(api_key)
  for (const text of [
    `Instance  ${one.info.base_url}`,
    `Key       sk_live_…${api_key.slice(-4)}, ${label} (${key_id})`,
    'Found in  berth login',
    `Account   ${account_id}`,
    'Reaches   the whole account',
  ])
    expect(stdout).toContain(`${text}\n`)
  expect(stdout).toMatch(new RegExp(`${two.info.base_url} .*Z\n`))
  expect(stdout).toMatch(new RegExp(`${one.info.base_url} .*Z  yes\n`))
})

test('prints the source of the credential, and the label of a key of the data directory', async () => {
  using person = newPerson()
  const { base_url, api_key } = one.info
  const folder = dataFolder(person.cwd, one)
  const ways: [args: string[], env: Record<string, string>, from: string][] = [
    [[], {}, 'data directory'],
    [['--data', folder], {}, 'data directory'],
    [['--base-url', base_url, '--api-key', api_key], {}, 'flag'],
    [[], { BERTH_BASE_URL: base_url, BERTH_API_KEY: api_key }, 'environment'],
  ]
  for (const [args, env, from] of ways) {
    const { stdout } = await person.run(['whoami', '--json', ...args], env)
    expect(JSON.parse(stdout)).toMatchObject({
      base_url,
      credential_from: from,
      label: 'First key',
      masked: `sk_live_…${api_key.slice(-4)}`,
      scope: 'account',
      valid: true,
      logins: [],
    })
    expect(stdout).not.toContain(api_key)
  }
})

test('prints what a limited key may know of itself', async () => {
  using person = newPerson()
  await signIn(person, one.info)
  const { key_id } = person.kept().instances[one.info.base_url]
  await one.call('PATCH', `/keys/${key_id}`, { allowed_server_ids: [await one.server()] })
  const { exitCode, stdout } = await person.run(['whoami', '--json'])
  expect(exitCode).toBe(0)
  expect(JSON.parse(stdout)).toMatchObject({ key_id, scope: 'limited', valid: true })
  expect((await person.run(['whoami'])).stdout).toContain('Reaches   some servers or projects')
})

test('says of a key that is not valid any more that it is not, and what helps', async () => {
  using person = newPerson()
  await signIn(person, one.info)
  const { base_url } = one.info
  const { key_id } = person.kept().instances[base_url]
  await one.call('DELETE', `/keys/${key_id}`)
  const { exitCode, stdout, stderr } = await person.run(['whoami'])
  expect(exitCode).toBe(1)
  expect(stdout).toContain(`(${key_id}): not accepted\n`)
  const said = `The key that berth login has left for ${base_url} is not valid any more. Run "berth login ${base_url}".`
  expect(stderr).toContain(said)
  expect((await person.run(['servers'])).stderr).toContain(said)
})

test('calls no key refused when nothing responds', async () => {
  using person = newPerson()
  await using gone = await testBerth({ flags: { port: freePort() } })
  await signIn(person, gone.info)
  await gone[Symbol.asyncDispose]()
  const { exitCode, stdout, stderr } = await person.run(['whoami'])
  expect(exitCode).toBe(1)
  expect(stdout).toContain(': could not be checked\n')
  expect(stderr).toContain('Nothing answers at')
  expect(JSON.parse((await person.run(['whoami', '--json'])).stdout).valid).toBeNull()
})

test('of nobody says how to sign in', async () => {
  using person = newPerson()
  const { exitCode, stderr } = await person.run(['whoami'])
  expect(exitCode).toBe(1)
  expect(stderr).toContain('or sign in to one with "berth login URL"')
})
