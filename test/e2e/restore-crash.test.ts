import { expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { call, serve } from '../support/serve.ts'

/** How often it is killed, each time a little later. */
const KILLS = 12

test('killed while it restores, berth comes up with the old state or the restored one, whole', async () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'berth-restore-crash-'))
  const args = ['--port', '0', '--data', dataDir, '--isolation', 'none']
  const control = (info: { base_url: string; admin_token: string }, path: string, body?: object) =>
    fetch(`${info.base_url}/_berth${path}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${info.admin_token}`, 'content-type': 'application/json' },
      ...(body ? { body: JSON.stringify(body) } : {}),
    })
  let berth = serve(args)
  try {
    const seen = new Set<string>()
    let info = await berth.ready
    const a = (await call(info, 'POST', '/servers', { task: 'a' })).body.id
    await call(info, 'PUT', `/servers/${a}/files`, { path: 'which', content: 'a' })
    await control(info, '/snapshots', { name: 'a' })
    await control(info, '/reset')
    const b = (await call(info, 'POST', '/servers', { task: 'b' })).body.id
    await call(info, 'PUT', `/servers/${b}/files`, { path: 'which', content: 'b' })
    await control(info, '/snapshots', { name: 'b' })

    const begun = performance.now()
    await control(info, '/snapshots/b/restore')
    const usualMs = performance.now() - begun
    for (let kill = 0; kill < KILLS; kill += 1) {
      const restoring = control(info, '/snapshots/a/restore').catch(() => {})
      // The first kill comes before anything is done, the last one after all is.
      if (kill === KILLS - 1) await restoring
      else await Bun.sleep((kill / KILLS) * usualMs)
      berth.child.kill('SIGKILL')
      await Promise.all([berth.child.exited, restoring])
      berth = serve(args)
      info = await berth.ready
      const { servers } = (await call(info, 'GET', '/servers')).body
      expect(servers.length).toBe(1)
      const [{ id, task }] = servers
      expect(id).toBe(task === 'a' ? a : b)
      const files = (await call(info, 'GET', `/servers/${id}/files?path=which`)).body
      expect(files.content).toBe(task)
      seen.add(task)
      await control(info, '/snapshots/b/restore')
    }
    // Both were met: the kills came before and after the decision.
    expect([...seen].sort()).toEqual(['a', 'b'])
  } finally {
    berth.child.kill('SIGTERM')
    await berth.child.exited
    rmSync(dataDir, { recursive: true, force: true })
  }
}, 300_000)
