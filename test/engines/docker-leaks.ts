import { describe, expect, test } from 'bun:test'
import { copyFileSync, existsSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { EngineNotes } from '../../src/compute/engine/owner.ts'
import { run, serve, temporaryFolder } from '../cli/command.ts'
import type { EngineRig } from '../support/engines/engine-rig.ts'
import { until } from '../support/processes.ts'

interface Leak {
  kind: string
  id: string
  detail: string
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

    test('lists volumes that an older database does not name, and removes none of them', async () => {
      using folder = temporaryFolder()
      const env = { XDG_STATE_HOME: join(folder.path, 'state'), TMPDIR: folder.path }
      const options = { cwd: folder.path, env }
      const engine = ['--engine', `unix://${rig().socket}`]
      const start = () => serve(['--compute', 'docker', ...engine], options)
      const database = join(folder.path, '.berth', 'berth.db')
      const doctor = async (...more: string[]) => {
        const outcome = await run(['doctor', '--leaks', '--json', ...engine, ...more], options)
        const { leaks, kept }: { leaks: Leak[]; kept: Leak[] } = JSON.parse(outcome.stdout)
        return { exitCode: outcome.exitCode, leaks, kept: kept.map(({ kind, id }) => [kind, id]) }
      }
      let owner = ''
      {
        await using first = await start()
        owner = new EngineNotes(first.info.data_dir).owner
        await first.server()
      }
      const volumes = async (): Promise<string[]> =>
        (await rig().volumes()).filter((name) => name.startsWith(`berth-${owner.slice(0, 8)}`))
      const older = await volumes()
      copyFileSync(database, `${database}.backup`)
      {
        await using second = await start()
        await second.server()
        expect(await doctor()).toEqual({ exitCode: 0, leaks: [], kept: [] })
      }
      const all = await volumes()
      const [unnamed = '', caches] = all.filter((name) => !older.includes(name))
      expect(caches).toBe(`${unnamed}-caches`)

      renameSync(database, `${database}.newer`)
      renameSync(`${database}.backup`, database)
      const listed = { exitCode: 0, leaks: [], kept: [['volume', unnamed]] }
      expect(await doctor()).toEqual(listed)
      expect(await doctor('--fix')).toEqual(listed)
      const { stdout } = await run(['doctor', '--leaks', ...engine], options)
      expect(stdout).toContain(`volume ${unnamed}: kept, not a leak: of the server srv_`)
      expect(stdout).toContain(`  docker volume rm ${unnamed} ${caches}\n`)
      {
        await using third = await start()
        await third.server()
        expect(await doctor('--fix')).toEqual(listed)
        third.child.kill('SIGTERM')
        await third.child.exited
        expect(await third.stderr).toContain('volumes that the database does not name are kept')
      }
      expect(await volumes()).toEqual(expect.arrayContaining(all))

      // The one that names it is there again.
      renameSync(`${database}.newer`, database)
      expect((await doctor()).kept.map(([, id]) => id)).not.toContain(unnamed)
      // A start refuses without any, and nobody knows whose they are.
      rmSync(database)
      expect((await doctor('--fix')).kept.map(([, id]) => id)).toEqual(
        expect.arrayContaining([unnamed, ...older.slice(0, 1)]),
      )
      expect(await volumes()).toEqual(expect.arrayContaining(all))
      for (const name of await volumes()) await rig().client().send('DELETE', `/volumes/${name}`)
    }, 120_000)
  })
}
