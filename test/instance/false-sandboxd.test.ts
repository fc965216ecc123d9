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

/** Waits until a server has ended. */
async function asleep(id: string): Promise<void> {
  const status = async (): Promise<string> => (await berth.call('GET', `/servers/${id}`)).body.server.status
  await until(async () => (await status()) === 'sleeping', 'the server to have ended')
}

/** The response to a command that was not started. */
const NOT_STARTED = {
  status: 502,
  error: 'compute_backend_error',
  message: expect.stringContaining('The server is not running any more; start it again.'),
}

test.each(FALSE_DEEDS)('a sandboxd that %s loses its server, and no other server notices', async (deed) => {
  writeFileSync(join(dir, 'deed'), deed)
  const id = await berth.server()
  rmSync(join(dir, 'deed'))
  const before = berth.log().length
  const { status, body } = await berth.call('POST', `/servers/${id}/exec`, { command: 'true' })
  // The first of two responses counts. A command that has started counts as killed, another one was not started.
  if (deed === 'exits twice') expect({ status, ...body }).toMatchObject({ status: 200, exitCode: 0 })
  else if (deed.startsWith('starts'))
    expect({ status, ...body }).toMatchObject({ status: 200, exitCode: 137 })
  else expect({ status, ...body }).toMatchObject(NOT_STARTED)
  await asleep(id)
  expect(berth.log().slice(before)).toContain('a sandbox ended by itself')
  expect((await berth.exec(other, 'echo on')).stdout).toBe('on\n')
  // With the real one it runs again.
  expect((await berth.exec(id, 'echo again')).stdout).toBe('again\n')
  expect((await berth.call('DELETE', `/servers/${id}`)).status).toBe(200)
})

test.each([
  ['a command', 'exec', { command: 'touch ran' }],
  ['a command with input', 'exec', { command: 'touch ran', stdin: 'x' }],
  ['an execution', 'exec', { command: 'touch ran', detach: true }],
  ['a terminal', 'terminals', { command: 'touch ran' }],
])('%s for a sandboxd that was stopped is 502, and has not run', async (_, noun, body) => {
  writeFileSync(join(dir, 'deed'), 'stops')
  const id = await berth.server()
  rmSync(join(dir, 'deed'))
  const { status, body: error } = await berth.call('POST', `/servers/${id}/${noun}`, body)
  expect({ status, ...error }).toMatchObject(NOT_STARTED)
  await asleep(id)
  expect((await berth.exec(id, 'ls')).stdout).toBe('')
  expect((await berth.call('DELETE', `/servers/${id}`)).status).toBe(200)
})
