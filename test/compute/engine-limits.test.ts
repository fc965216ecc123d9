import { expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { engineDriver } from '../support/engines/engine-rig.ts'

/** What engines respond of themselves: Podman as Podman 4.3 does, of which an ordinary user has control groups of version 1. */
const podman = (cgroupControllers: string[]): Record<string, object> => ({
  '/version': { Components: [{ Name: 'Podman Engine' }] },
  '/info': { MemoryLimit: true, PidsLimit: true, CpuCfsQuota: true, SecurityOptions: ['name=seccomp'] },
  '/libpod/info': { host: { cgroupControllers } },
})
const docker = (has: boolean): Record<string, object> => ({
  '/version': {},
  '/info': { MemoryLimit: has, PidsLimit: has, CpuCfsQuota: has, SecurityOptions: ['name=seccomp'] },
})
const HELD = { cpu: 'cgroup', memory: 'cgroup', processes: 'cgroup' }
const WATCHED = { cpu: 'none', memory: 'watchdog', processes: 'watchdog' }

test.each([
  ['Docker', docker(true), HELD],
  ['Docker without control groups', docker(false), WATCHED],
  ['Podman', podman(['cpu', 'memory', 'pids']), HELD],
  ['Podman that says that it limits all, and has no control groups', podman([]), WATCHED],
])('%s: it is said who holds servers to their limits', async (_, responses, enforced) => {
  const directory = mkdtempSync(join(tmpdir(), 'berth-compute-'))
  const unix = join(directory, 'engine.sock')
  const engine = Bun.serve({
    unix,
    fetch({ url }) {
      const { pathname } = new URL(url)
      if (pathname === '/_ping') return new Response('OK', { headers: { 'api-version': '1.41' } })
      const found = responses[pathname.replace('/v1.41', '')]
      return Response.json(found ?? { message: 'there is none' }, { status: found ? 200 : 404 })
    },
  })
  try {
    const probe = await engineDriver(unix, directory).probe()
    if (!probe.available) throw new Error(probe.reason)
    expect(await probe.enforced()).toMatchObject(enforced)
    const said = probe.notes?.some((note) =>
      note.startsWith('The engine does not limit cpu, memory, processes'),
    )
    expect(said).toBe(enforced === WATCHED)
  } finally {
    await engine.stop(true)
    rmSync(directory, { recursive: true, force: true })
  }
})
