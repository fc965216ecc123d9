import { describe, expect, test } from 'bun:test'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { EngineNotes } from '../../src/compute/engine/owner.ts'
import { run, serve, temporaryFolder } from '../cli/command.ts'
import type { EngineRig } from '../support/engines/engine-rig.ts'
import { until } from '../support/processes.ts'

interface Leak {
  kind: string
  id: string
  remedy: string
}

/** What `berth doctor --leaks` finds of killed berths. */
export function engineLeakTests(rig: () => EngineRig): void {
  describe('doctor --leaks', () => {
    test('removes containers and volumes of killed berths, and none of others or of servers that are kept', async () => {
      using folder = temporaryFolder()
      const env = { XDG_STATE_HOME: join(folder.path, 'state'), TMPDIR: folder.path }
      const engine = ['--engine', `unix://${rig().socket}`]
      const flags = ['--compute', 'docker', ...engine]
      await using living = await serve([...flags, '--ephemeral'], { env })
      await using killed = await serve([...flags, '--ephemeral'], { env })
      await using kept = await serve(flags, { env })
      const instances = [living, killed, kept]
      for (const one of instances) await one.server()
      const owners = instances.map(({ info }) => new EngineNotes(info.data_dir).owner)
      const [ofLiving = '', ofKilled = '', ofKept = ''] = owners
      const volumesOf = async (owner: string): Promise<string[]> =>
        (await rig().volumes()).filter((name) => name.startsWith(`berth-${owner.slice(0, 8)}`))
      for (const { child } of [killed, kept]) {
        child.kill('SIGKILL')
        await child.exited
      }
      for (const owner of [ofKilled, ofKept])
        await until(async () => (await rig().containers(owner)).length === 0, 'the containers to end')
      // As a container does that berth has not reached yet: nothing ends it.
      const Labels = { 'berth.owner': ofKept, 'berth.server': 'srv_a', 'berth.ephemeral': 'false' }
      await rig()
        .client()
        .send('POST', '/containers/create', {
          query: { name: 'left' },
          body: { Image: 'berth-base:latest', Cmd: ['true'], Labels },
        })
      // The next ephemeral start leaves what alone names the volumes.
      await using _next = await serve(['--isolation', 'none', '--ephemeral'], { env })
      expect(existsSync(killed.info.data_dir)).toBe(true)

      const doctor = async (...more: string[]): Promise<{ leaks: Leak[]; removed: Leak[] }> => {
        const args = ['doctor', '--leaks', '--json', '--data', kept.info.data_dir, ...more]
        const { stdout, stderr } = await run(args, { cwd: folder.path, env })
        expect(stderr).toBe('')
        return JSON.parse(stdout)
      }
      const [volume = ''] = await volumesOf(ofKilled)
      const { leaks } = await doctor(...engine)
      const onEngine = leaks.filter(({ kind }) => kind === 'container' || kind === 'volume')
      expect(onEngine.map(({ id, remedy }) => [id, remedy])).toEqual([
        ['left', 'docker rm -f left'],
        [volume, `docker volume rm ${volume} ${volume}-caches`],
      ])

      const before = { living: await volumesOf(ofLiving), kept: await volumesOf(ofKept) }
      expect([before.living.length, before.kept.length]).toEqual([2, 2])
      const fixed = await doctor('--fix', ...engine)
      expect(fixed.removed.map(({ id }) => id)).toEqual(
        expect.arrayContaining(['left', volume, killed.info.data_dir]),
      )
      expect(fixed.leaks.filter(({ id }) => id.includes(folder.path))).toEqual([])
      expect({ living: await volumesOf(ofLiving), kept: await volumesOf(ofKept) }).toEqual(before)
      expect(await volumesOf(ofKilled)).toEqual([])
      expect(await rig().containers(ofLiving)).toHaveLength(1)
      for (const name of before.kept) await rig().client().send('DELETE', `/volumes/${name}`)
    }, 120_000)
  })
}
