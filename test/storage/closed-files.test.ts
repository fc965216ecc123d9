import { expect, test } from 'bun:test'
import { existsSync, mkdirSync, mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { asUser, whyNoOrdinaryUser } from '../support/ordinary-user.ts'

const SCRIPT = join(import.meta.dir, 'closed-files.ts')
const noUser = whyNoOrdinaryUser()
if (noUser !== null) console.error(`SKIP what may not be read: ${noUser}`)

test.skipIf(noUser !== null)(
  'an ordinary user: unreadable files are kept with their modes, and do not prevent a removal',
  async () => {
    const child = Bun.spawn(asUser([process.execPath, SCRIPT]), {
      stdout: 'pipe',
      stderr: 'inherit',
      env: { ...process.env, TMPDIR: '/tmp' },
    })
    const { uid, expected, ...seen } = JSON.parse(await child.stdout.text())
    expect(uid).not.toBe(0)
    expect(seen).toEqual({ kept: expected, restored: expected, text: 'closed', swept: false, left: [] })
  },
)

test.skipIf(noUser !== null)(
  'an ordinary user: files that go away while closed files are opened for a copy do not prevent it',
  async () => {
    const script = join(import.meta.dir, 'changing-copy.ts')
    const child = Bun.spawn(asUser([process.execPath, script]), {
      stdout: 'pipe',
      stderr: 'inherit',
      env: { ...process.env, TMPDIR: '/tmp' },
    })
    expect(JSON.parse(await child.stdout.text())).toEqual({ copied: true, errors: [] })
  },
)

test('a tree is removed where no process can be started for it', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'berth-remove-'))
  mkdirSync(join(folder, 'a/b'), { recursive: true })
  writeFileSync(join(folder, 'a/b/file'), '')
  const module = join(import.meta.dir, '../../src/storage/files.ts')
  const script = `const { removeTreeAside } = await import(${JSON.stringify(module)}); await removeTreeAside(${JSON.stringify(folder)})`
  const child = Bun.spawn([process.execPath, '-e', script], { env: { PATH: '/nowhere' }, stderr: 'inherit' })
  expect(await child.exited).toBe(0)
  expect(existsSync(folder)).toBe(false)
})
