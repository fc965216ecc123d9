import { afterAll, beforeAll, expect, test } from 'bun:test'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestBerth, testBerth } from '../support/berth.ts'
import { until } from '../support/processes.ts'
import { FALSE_DEEDS } from './false-sandboxd.ts'

let dir: string
let berth: TestBerth
let other: string

beforeAll(async () => {
  dir = mkdtempSync(join(tmpdir(), 'berth-false-'))
  const main = join(import.meta.dir, '../../src/main.ts')
  const falsely = join(import.meta.dir, 'false-sandboxd.ts')
  // Starts the real sandboxd, unless a file says what a false one does.
  const program = join(dir, 'sandboxd')
  const deed = join(dir, 'deed')
  writeFileSync(
    program,
    `#!/bin/sh\n[ -e ${deed} ] && exec ${process.execPath} ${falsely} "$(cat ${deed})"\nexec ${process.execPath} ${main} "$@"\n`,
    { mode: 0o755 },
  )
  const self = { argv: [program] as const, compiled: true }
  berth = await testBerth({ flags: { isolation: 'none' }, dependencies: { self } })
  other = await berth.server()
})
afterAll(async () => {
  await berth?.[Symbol.asyncDispose]()
  rmSync(dir, { recursive: true, force: true })
})

test.each(FALSE_DEEDS)('a sandboxd that %s loses its server, and no other server notices', async (deed) => {
  writeFileSync(join(dir, 'deed'), deed)
  const id = await berth.server()
  rmSync(join(dir, 'deed'))
  const before = berth.log().length
  const { status, body } = await berth.call('POST', `/servers/${id}/exec`, { command: 'true' })
  // The first of two responses counts.
  expect({ status, exitCode: body.exitCode }).toEqual({
    status: 200,
    exitCode: deed === 'exits twice' ? 0 : 137,
  })
  const statusOf = async (): Promise<string> => (await berth.call('GET', `/servers/${id}`)).body.server.status
  await until(async () => (await statusOf()) === 'sleeping', 'the server to have ended')
  expect(berth.log().slice(before)).toContain('a sandbox ended by itself')
  expect((await berth.exec(other, 'echo on')).stdout).toBe('on\n')
  // With the real one it runs again.
  expect((await berth.exec(id, 'echo again')).stdout).toBe('again\n')
  expect((await berth.call('DELETE', `/servers/${id}`)).status).toBe(200)
})
