import { describe, expect, test } from 'bun:test'
import { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { ComputeError } from '../../../src/compute/sandbox.ts'
import type { Isolation } from '../../../src/config/config.ts'
import { Bench, driverOn, LIMITS, run } from '../bench.ts'

/** What becomes of a server's files. */
export function folderTests(name: Isolation): void {
  describe('folders', () => {
    test('are removed whole: deep, closed, and with links that lead out', async () => {
      await using bench = new Bench(name)
      const handle = await bench.driver.create('srv_a')
      const sandbox = await bench.startAgain('srv_a', handle)
      const outside = join(bench.dataDir, 'outside')
      mkdirSync(outside)
      writeFileSync(join(outside, 'kept'), '')
      await run(
        sandbox,
        `ln -s ${outside} out; ln -s / root; mkdir closed; touch closed/file; chmod 000 closed`,
      )
      await run(
        sandbox,
        'for n in $(seq 400); do mkdir a-long-name-of-a-folder; cd a-long-name-of-a-folder; done',
      )
      await sandbox.stop()
      await bench.driver.destroy(handle)
      expect(readdirSync(join(bench.dataDir, 'servers'))).toEqual([])
      expect(existsSync(join(outside, 'kept'))).toBe(true)
      await bench.driver.destroy(handle)
    })

    test('without a record are removed by a start if nobody was given them and they are empty, others stay', async () => {
      await using bench = new Bench(name)
      const { driver } = bench
      const servers = join(bench.dataDir, 'servers')
      const owned = await driver.create('srv_owned')
      await driver.create('srv_blank')
      await driver.create('srv_written')
      writeFileSync(join(servers, 'srv_written/workspace/file'), '')
      driver.keep(await driver.create('srv_given'))
      const deleted = await driver.create('srv_deleted')
      mkdirSync(join(servers, '.new-srv_half'))
      const { kept, remove } = driver.takeStock([owned], [deleted])
      await driver.create('srv_later')
      await remove()
      expect([...kept].sort()).toEqual(['srv_given', 'srv_written'])
      const left = ['srv_deleted', 'srv_given', 'srv_later', 'srv_owned', 'srv_written']
      expect(readdirSync(servers).sort()).toEqual(left)
      await expect(driver.create('srv_given')).rejects.toBeInstanceOf(ComputeError)
    })

    test('that berth places belong to the server: its commands change all of it, and see nothing of the preparation', async () => {
      await using bench = new Bench(name)
      const handle = await bench.driver.create('srv_a')
      const workspace = bench.driver.workspace(handle)
      await using staging = await workspace.staging()
      mkdirSync(join(staging.path, 'code/sub'), { recursive: true, mode: 0o700 })
      writeFileSync(join(staging.path, 'code/sub/run'), '#!/bin/sh\necho ran', { mode: 0o700 })
      await workspace.moveIn(join(staging.path, 'code'), 'projects/app')
      const sandbox = await bench.startAgain('srv_a', handle)
      const { stdout } = await run(
        sandbox,
        'cd projects/app && sub/run && echo more >> sub/run && touch new && rm -r sub && ls; stat -c %U . new | uniq | wc -l',
      )
      expect(stdout).toBe('ran\nnew\n1\n')
      if (name !== 'none') expect((await run(sandbox, `ls ${staging.path}`)).exitCode).not.toBe(0)
    })

    test('in which a killed berth prepared something are swept, those in use stay', async () => {
      await using bench = new Bench(name)
      const handle = await bench.driver.create('srv_a')
      await using staging = await bench.driver.workspace(handle).staging()
      const area = join(bench.dataDir, 'servers/srv_a/staging')
      mkdirSync(join(area, '.berth-abandoned-0123456789abcdef.tmp/code'), { recursive: true })
      await bench.driver.takeStock([handle], []).remove()
      expect(readdirSync(area)).toEqual([basename(staging.path)])
    })

    test('cannot be made or named outside the data folder', async () => {
      await using bench = new Bench(name)
      const { driver } = bench
      expect(driver.create('../evil')).rejects.toBeInstanceOf(ComputeError)
      const foreign = { kind: 'cloud', folder: 'servers/srv_a' }
      expect(() => driver.workspace(foreign)).toThrow(ComputeError)
      expect(driver.start('srv_a', foreign, LIMITS)).rejects.toBeInstanceOf(ComputeError)
    })

    test('made under another tier are taken over', async () => {
      await using bench = new Bench(name)
      const handle = await driverOn('none', bench.dataDir).create('srv_a')
      const sandbox = await bench.startAgain('srv_a', JSON.parse(JSON.stringify(handle)))
      expect((await run(sandbox, 'echo mine > file; cat file')).stdout).toBe('mine\n')
    })

    test('a server whose folder is gone does not start, and says so', async () => {
      await using bench = new Bench(name)
      const handle = await bench.driver.create('srv_a')
      await bench.driver.destroy(handle)
      expect(bench.startAgain('srv_a', handle)).rejects.toBeInstanceOf(ComputeError)
    })
  })
}
