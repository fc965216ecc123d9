import { Database } from 'bun:sqlite'
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import {
  chmodSync,
  chownSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { type TestBerth, testBerth } from '../support/berth.ts'
import { run, start } from './command.ts'
import { newPerson, type Person, signIn } from './sign-in.ts'

let one: TestBerth
beforeAll(async () => {
  one = await testBerth()
})
afterAll(() => one[Symbol.asyncDispose]())

/** Whether a command of a person gets to the instance. */
const gets = async (person: Person): Promise<boolean> => (await person.run(['servers'])).exitCode === 0

/** What each command that uses the file says: the same, before anything is asked or opened. */
async function refusals(person: Person): Promise<string> {
  const said: string[] = []
  for (const args of [['servers'], ['whoami'], ['logout'], ['login', one.info.base_url]]) {
    const { exitCode, stdout, stderr } = await person.run(args)
    expect({ exitCode, stdout }).toEqual({ exitCode: 1, stdout: '' })
    said.push(stderr)
  }
  expect(new Set(said).size).toBe(1)
  return said[0] ?? ''
}

/** An account of the machine that is neither the test's own nor root. */
const ANOTHER = 65_534

/** Whether a process has a file open. */
function hasOpen(pid: number, path: string): boolean {
  const folder = `/proc/${pid}/fd`
  try {
    return readdirSync(folder).some((name) => readlinkSync(join(folder, name)) === path)
  } catch {
    // A descriptor was closed amid the look, or the process ended.
    return false
  }
}

describe('the file of keys', () => {
  test.each([0o644, 0o640, 0o606])(
    'with rights of others (%o) is not used, with the remedy',
    async (mode) => {
      using person = newPerson()
      await signIn(person, one.info)
      chmodSync(person.path, mode)
      const said = await refusals(person)
      expect(said).toContain(`${person.path} is open to other users (mode 0${mode.toString(8)})`)
      expect(said).toContain(`Run: chmod 600 ${person.path}`)
      chmodSync(person.path, 0o600)
      expect(await gets(person)).toBe(true)
    },
  )

  test.skipIf(process.getuid?.() !== 0)('of another user, or in a folder of one, is not used', async () => {
    using person = newPerson()
    await signIn(person, one.info)
    chownSync(person.path, ANOTHER, ANOTHER)
    const said = await refusals(person)
    expect(said).toContain(
      `${person.path} belongs to another user (${ANOTHER}), and so its keys are not used. Run berth as that user, remove it, or`,
    )
    chownSync(person.path, 0, 0)
    const folder = dirname(person.path)
    chownSync(folder, ANOTHER, ANOTHER)
    expect(await refusals(person)).toContain(`${folder} belongs to another user (${ANOTHER})`)
    rmSync(person.path)
    const { stderr } = await person.run(['login', one.info.base_url])
    expect(stderr).toContain(`${folder} belongs to another user (${ANOTHER})`)
    chownSync(folder, 0, 0)
  })

  test.each([0o777, 0o1777, 0o770])('in a folder that others can write (%o) is not used', async (mode) => {
    using person = newPerson()
    await signIn(person, one.info)
    const folder = dirname(person.path)
    chmodSync(folder, mode)
    const shown = `0${(mode & 0o777).toString(8)}`
    const said = await refusals(person)
    expect(said).toContain(`${folder} can be written by other users (mode ${shown})`)
    expect(said).toContain(`Run: chmod 700 ${folder}.`)
    rmSync(person.path)
    // Who is not signed in yet hears it before the browser opens.
    const { exitCode, stderr } = await person.run(['login', one.info.base_url])
    expect([exitCode, stderr]).toEqual([1, said])
  })

  test('by a link to a file of others is not used, and only the link is to be removed', async () => {
    using person = newPerson()
    await signIn(person, one.info)
    const target = join(person.cwd, 'passwd')
    renameSync(person.path, target)
    chmodSync(target, 0o644)
    symlinkSync(target, person.path)
    const said = await refusals(person)
    expect(said).toContain(
      `${person.path} is a link to ${target}, which is open to other users (mode 0644), and so its keys are not used. Remove the link: rm ${person.path}.`,
    )
    expect(said).not.toContain('chmod')
    chmodSync(target, 0o600)
    expect(await gets(person)).toBe(true)
  })

  test("is used in a folder that is a link, where what it leads to is its owner's alone", async () => {
    using person = newPerson()
    const folder = dirname(person.path)
    const target = join(person.cwd, 'dotfiles')
    mkdirSync(dirname(folder))
    mkdirSync(target, { mode: 0o755 })
    symlinkSync(target, folder)
    await signIn(person, one.info)
    expect(await gets(person)).toBe(true)
    expect(readdirSync(target).sort()).toEqual(['credentials.json', 'credentials.lock'])
    expect(lstatSync(folder).isSymbolicLink()).toBe(true)
    chmodSync(join(target, 'credentials.json'), 0o644)
    expect(await refusals(person)).toContain(
      `${person.path}, by the link ${folder}, is ${target}/credentials.json, which is open to other users (mode 0644), and so its keys are not used. Remove the link: rm ${folder}.`,
    )
    chmodSync(join(target, 'credentials.json'), 0o600)
    chmodSync(target, 0o777)
    const said = await refusals(person)
    expect(said).toContain(
      `${folder} is a link to ${target}, which can be written by other users (mode 0777)`,
    )
    expect(said).not.toContain('chmod')
  })

  test('that is not a file is not read', async () => {
    using person = newPerson()
    mkdirSync(person.path, { recursive: true, mode: 0o700 })
    expect(await refusals(person)).toContain(`${person.path} is not a file. Remove it.`)
    rmSync(person.path, { recursive: true })
    Bun.spawnSync(['mkfifo', '-m', '600', person.path])
    expect(await refusals(person)).toContain(`${person.path} is not a file. Remove it.`)
  })

  test("has a lock that is its owner's alone, and one that is a link is not used", async () => {
    using person = newPerson()
    await signIn(person, one.info)
    const lock = join(dirname(person.path), 'credentials.lock')
    expect(statSync(lock).mode & 0o777).toBe(0o600)
    chmodSync(lock, 0o644)
    await signIn(person, one.info)
    expect(statSync(lock).mode & 0o777).toBe(0o600)
    const target = join(person.cwd, 'made')
    rmSync(lock)
    symlinkSync(target, lock)
    for (const args of [['logout'], ['login', one.info.base_url]]) {
      const { exitCode, stderr } = await person.run(args)
      expect(exitCode).toBe(1)
      expect(stderr).toContain(`${lock} is a link to nothing, and is not used. Remove the link: rm ${lock}.`)
    }
    writeFileSync(target, 'kept')
    expect((await person.run(['login', one.info.base_url])).stderr).toContain(`is a link to ${target}, `)
    expect(readFileSync(target, 'utf8')).toBe('kept')
    rmSync(lock)
    expect((await person.run(['logout'])).exitCode).toBe(0)
  })

  test.each(['', ' \n', '{}'])('with nothing in it (%p) keeps no login, and takes one', async (text) => {
    using person = newPerson()
    mkdirSync(dirname(person.path), { recursive: true, mode: 0o700 })
    writeFileSync(person.path, text, { mode: 0o600 })
    expect((await person.run(['logout'])).stderr).toContain('You are signed in to no instance.')
    await signIn(person, one.info)
    expect(await gets(person)).toBe(true)
  })

  test.each(['{', '{"current":null}', '{"instances":{"http://127.0.0.1:1":{}}}', '[]'])(
    'damaged as %p is said to be so',
    async (text) => {
      using person = newPerson()
      await signIn(person, one.info)
      writeFileSync(person.path, text)
      const { exitCode, stderr } = await person.run(['servers'])
      expect(exitCode).toBe(1)
      expect(stderr).toContain(`berth: ${person.path} is damaged. Restore or remove it`)
    },
  )

  test('is changed by one command at a time: what another has just written is not lost', async () => {
    using person = newPerson()
    const login = { api_key: 'k', key_id: 'key_x', account_id: 'acct_x', label: 'x', created_at: 'then' }
    const [leaving, added] = ['http://127.0.0.1:1', 'http://127.0.0.1:2']
    const write = (urls: string[]): void => {
      const instances = Object.fromEntries(urls.map((url) => [url, login]))
      writeFileSync(person.path, JSON.stringify({ current: null, instances }), { mode: 0o600 })
    }
    mkdirSync(dirname(person.path), { recursive: true, mode: 0o700 })
    write([leaving])
    const lockPath = join(dirname(person.path), 'credentials.lock')
    const lock = new Database(lockPath)
    lock.run('BEGIN EXCLUSIVE')
    const child = start(['logout', leaving], person)
    // It has come as far as it can: it waits at the lock, or is through.
    while (child.exitCode === null && !hasOpen(child.pid, lockPath)) await Bun.sleep(5)
    expect(Object.keys(person.kept().instances)).toEqual([leaving])
    write([leaving, added])
    lock.close()
    expect(await child.exited).toBe(0)
    expect(Object.keys(person.kept().instances)).toEqual([added])
  })

  test('is in ~/.config without XDG_CONFIG_HOME, and with one that is relative', async () => {
    using person = newPerson()
    await signIn({ ...person, env: { HOME: person.cwd, XDG_CONFIG_HOME: 'relative' } }, one.info)
    expect(existsSync(join(person.cwd, '.config/berth/credentials.json'))).toBe(true)
    const { exitCode } = await run(['servers'], { cwd: person.cwd, env: { HOME: person.cwd } })
    expect(exitCode).toBe(0)
  })
})
