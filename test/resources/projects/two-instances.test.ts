import { expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestBerth, testBerth } from '../../support/berth.ts'
import { projectPorts } from '../../support/ports.ts'

/** Makes a private project, and returns what shows its port. */
async function privateProject(berth: TestBerth): Promise<() => Promise<string>> {
  const created = await berth.call('POST', `/servers/${await berth.server()}/projects`, { name: 'shop' })
  expect(created.body).toMatchObject({ visibility: 'private', url: null })
  return async () =>
    (await berth.call('PATCH', `/projects/${created.body.id}`, { visibility: 'public' })).body.url
}

test('private projects of two instances have different ports, also if one has started again', async () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'berth-two-'))
  const flags = { isolation: 'none', 'project-ports': projectPorts() }
  try {
    const first = await testBerth({ dataDir, flags })
    const { body: server } = await first.call('POST', '/servers')
    const { body: project } = await first.call('POST', `/servers/${server.id}/projects`, { name: 'shop' })
    await first.stop()
    await using again = await testBerth({ dataDir, flags })
    await using other = await testBerth({ flags })
    // Its start is over then.
    const publishNext = await privateProject(again)
    const publishOther = await privateProject(other)
    const { body } = await again.call('PATCH', `/projects/${project.id}`, { visibility: 'public' })
    const urls = [body.url, await publishOther(), await publishNext()]
    expect(new Set(urls).size).toBe(3)
  } finally {
    rmSync(dataDir, { recursive: true, force: true })
  }
})
