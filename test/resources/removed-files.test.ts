import { expect, test } from 'bun:test'
import { renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { berthForTests } from '../support/berth.ts'

const berth = await berthForTests()

test('a command on a running server whose directory is gone, and a snapshot, are 502 until it is back', async () => {
  const id = await berth.server()
  await berth.exec(id, 'echo kept > file')
  const [place, aside] = [join(berth.dataDir, 'servers', id), join(berth.dataDir, 'aside')]
  renameSync(place, aside)
  const exec = () => berth.call('POST', `/servers/${id}/exec`, { command: 'cat file' })
  const save = () => berth.control('POST', '/snapshots', { name: 'whole' })
  for (const refused of [await exec(), await save()]) {
    expect(refused).toMatchObject({ status: 502, body: { error: 'compute_backend_error' } })
    expect(refused.body.message).toContain("The server's files are gone")
  }
  renameSync(aside, place)
  expect((await exec()).body).toMatchObject({ exitCode: 0, stdout: 'kept\n' })
  expect((await save()).status).toBe(201)
})

test('a server is created after the directory that all sandboxes share was removed', async () => {
  await berth.server()
  rmSync(join(berth.dataDir, 'sandbox'), { recursive: true })
  const id = await berth.server()
  const { stdout } = await berth.exec(id, 'id -un; command -v bun >/dev/null && echo tools; node -p 1+1')
  expect(stdout).toEndWith('tools\n2\n')
})
