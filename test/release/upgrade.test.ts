import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { createHash } from 'node:crypto'
import { copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { compile } from '../../scripts/compile.ts'
import { SCHEMA } from '../../src/storage/database.ts'
import { release, version } from './facts.ts'
import { Machine } from './support.ts'

const machine = new Machine()
const bin = join(machine.path, 'bin')
const berth = join(bin, 'berth')
const downloads = join(machine.path, 'downloads')
const archive = `berth-${version}-linux-x64.tar.gz`
let own: Buffer

beforeAll(async () => {
  for (const directory of [bin, downloads]) mkdirSync(directory)
  await machine.output(['tar', '-xzf', join(release, archive)])
  own = readFileSync(join(machine.path, archive.slice(0, -'.tar.gz'.length), 'berth'))
}, 60_000)
afterAll(() => machine[Symbol.dispose]())

/** Puts the executable of the release in its place, as at an installation. */
const fresh = (): void => {
  writeFileSync(berth, own, { mode: 0o755 })
}

/** Compiles a program that says another version of itself, as a release of that version does. */
function another(file: string, facts: object): string {
  const source = join(machine.path, 'program.ts')
  writeFileSync(source, `console.log(JSON.stringify(${JSON.stringify(facts)}))`)
  const path = join(downloads, file)
  compile(source, path)
  return path
}

const sha256 = (path: string): string => createHash('sha256').update(readFileSync(path)).digest('hex')

const upgrade = (...args: string[]) => machine.run([berth, 'upgrade', '--from', ...args])

/** Expects a refusal that changes nothing. */
async function refuses(args: string[], message: string | RegExp): Promise<void> {
  const { exitCode, stderr } = await upgrade(...args)
  expect({ exitCode, stderr }).toEqual({ exitCode: 1, stderr: expect.stringMatching(message) })
  expect(stderr.trimEnd().split('\n')).toHaveLength(1)
  expect(readdirSync(bin)).toEqual(['berth'])
  expect(sha256(berth)).toBe(createHash('sha256').update(own).digest('hex'))
}

describe('berth upgrade', () => {
  test('replaces the executable, and keeps the older one beside it', async () => {
    fresh()
    const newer = another('newer', { version: '9.9.9', commit: 'abc', schema: SCHEMA + 1 })
    const { exitCode, stdout, stderr } = await upgrade(newer, '--sha256', sha256(newer).toUpperCase())
    expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' })
    expect(stdout).toBe(`berth ${version} was replaced by berth 9.9.9. The older one is ${berth}.previous.\n`)
    expect(readdirSync(bin).sort()).toEqual(['berth', 'berth.previous'])
    expect(sha256(berth)).toBe(sha256(newer))
    expect(await machine.output([`${berth}.previous`, 'version'])).toStartWith(`berth ${version} `)
    await machine.output(['rm', `${berth}.previous`])
  })

  test('takes the executable from an archive, by SHA256SUMS beside it, and sees that it is the same', async () => {
    fresh()
    for (const name of [archive, 'SHA256SUMS']) copyFileSync(join(release, name), join(downloads, name))
    const { exitCode, stdout } = await upgrade(join(downloads, archive))
    expect({ exitCode, stdout }).toEqual({
      exitCode: 0,
      stdout: `This is berth ${version} already. Nothing was changed.\n`,
    })
    expect(readdirSync(bin)).toEqual(['berth'])
  })

  test('refuses a file without a hash, and one with another', async () => {
    fresh()
    const newer = another('unlisted', { version: '9.9.9', commit: 'abc', schema: SCHEMA })
    await refuses([newer], /no hash to compare .* with: .*SHA256SUMS does not have it/)
    await refuses([newer, '--sha256', '0'.repeat(64)], /has the SHA-256 .*, expected was 000/)
    await refuses([join(downloads, 'missing')], /cannot be read/)
  })

  test('refuses an older schema, another system, and what is no berth', async () => {
    fresh()
    const older = another('older', { version: '0.0.1', commit: 'abc', schema: SCHEMA - 1 })
    await refuses([older, '--sha256', sha256(older)], `knows schema ${SCHEMA - 1} of the data directory`)
    const silent = another('silent', { version: '0.0.1' })
    await refuses([silent, '--sha256', sha256(silent)], 'does not tell the schema')
    for (const [system, found] of [
      ['linux-arm64', 'is for linux-arm64, and this machine has linux-x64'],
      ['darwin-arm64', 'is for darwin-arm64, and this machine has linux-x64'],
    ] as const) {
      const other = `berth-${version}-${system}.tar.gz`
      copyFileSync(join(release, other), join(downloads, other))
      await refuses([join(downloads, other)], found)
    }
    const text = join(downloads, 'text')
    writeFileSync(text, 'x'.repeat(10_000))
    await refuses([text, '--sha256', sha256(text)], 'is no executable')
  })

  test('refuses while an instance runs from the executable', async () => {
    fresh()
    const data = join(machine.path, 'data')
    await machine.output([berth, 'serve', '--detach', '--port', '0', '--data', data])
    try {
      const newer = another('newer', { version: '9.9.9', commit: 'abc', schema: SCHEMA })
      await refuses([newer, '--sha256', sha256(newer)], /runs instances \(process \d+/)
    } finally {
      await machine.output([berth, 'stop', '--data', data])
    }
    expect(existsSync(join(data, 'berth.db'))).toBe(true)
  })
})
