import { afterAll, describe, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Compute } from '../../src/compute/compute.ts'
import { debianRoot } from '../../src/compute/docker/prepare-image.ts'
import type { ServerHandle } from '../../src/compute/driver.ts'
import { EngineNotes } from '../../src/compute/engine/owner.ts'
import { ComputeError } from '../../src/compute/sandbox.ts'
import { createLogger } from '../../src/runtime/logger.ts'
import { VERSION } from '../../src/runtime/version.ts'
import { LIMITS, run, until } from '../compute/bench.ts'
import type { EngineRig } from '../support/engines/engine-rig.ts'
import { everyCombination } from '../support/thorough.ts'

/** Directories of data, which are removed after the tests. */
export function dataDirectories(): () => string {
  const made: string[] = []
  afterAll(() => {
    for (const directory of made) rmSync(directory, { recursive: true, force: true })
  })
  return () => {
    const directory = mkdtempSync(join(tmpdir(), 'berth-compute-'))
    made.push(directory)
    return directory
  }
}

/** Returns the id of a data directory on engines. */
export const ownerOf = (dataDir: string): string => new EngineNotes(dataDir).owner

/** Files of servers that are stopped, and what is left of servers. */
export function engineStockTests(rig: () => EngineRig): void {
  describe('the files of a server', () => {
    const newDirectory = dataDirectories()

    test('are reached while it is stopped, by a container that its next start takes over', async () => {
      const dataDir = newDirectory()
      const driver = rig().driver(dataDir)
      const handle = await driver.create('srv_a')
      const workspace = driver.workspace(handle)
      await workspace.write('a.txt', Buffer.from('asleep'))
      const [container] = await rig().containers(ownerOf(dataDir))
      const sandbox = await driver.start('srv_a', handle, LIMITS)
      await sandbox.stop()
      expect(await rig().containers(ownerOf(dataDir))).toEqual([])
      await workspace.read('a.txt')
      const [filesOnly] = await rig().containers(ownerOf(dataDir))
      expect(filesOnly).not.toBe(container)
      const again = await driver.start('srv_a', handle, LIMITS)
      expect(await rig().containers(ownerOf(dataDir))).toEqual([String(filesOnly)])
      expect((await run(again, 'cat a.txt')).stdout).toBe('asleep')
      await driver.destroy(handle)
      expect((await rig().volumes()).filter((name) => name.startsWith(String(handle.storage)))).toEqual([])
      await expect(driver.start('srv_a', handle, LIMITS)).rejects.toThrow('volume')
    }, 60_000)

    test('stay without a record, unless nobody was given the server; those of other data directories stay', async () => {
      const dataDir = newDirectory()
      const driver = rig().driver(dataDir)
      const [owned, blank, given] = await Promise.all(
        ['srv_o', 'srv_b', 'srv_g'].map((id) => driver.create(id)),
      )
      if (owned === undefined || blank === undefined || given === undefined) throw new Error('no handle')
      driver.keep(owned)
      driver.keep(given)
      const other = rig().driver(newDirectory())
      const others = await other.create('srv_b')
      const sandbox = await driver.start('srv_o', owned, LIMITS)
      const next = rig().driver(dataDir)
      const remains = next.takeStock([owned], [])
      await remains.end()
      await sandbox.exited
      await remains.remove()
      const volumes = await rig().volumes()
      const has = ({ storage }: ServerHandle): boolean => volumes.includes(String(storage))
      expect([owned, blank, given, others].map(has)).toEqual([true, false, true, true])
    }, 60_000)

    test('go with a data directory that goes when berth ends', async () => {
      const dataDir = newDirectory()
      const driver = rig().driver(dataDir, { ephemeral: true })
      const handle = await driver.create('srv_a')
      driver.keep(handle)
      await driver.workspace(handle).write('a.txt', Buffer.from('there'))
      await driver.close()
      expect(await rig().containers(ownerOf(dataDir))).toEqual([])
      expect((await rig().volumes()).filter((name) => name.startsWith(handle.storage))).toEqual([])
    }, 60_000)

    test('outlive its container that is killed, which is said', async () => {
      const dataDir = newDirectory()
      const driver = rig().driver(dataDir)
      const handle = await driver.create('srv_a')
      const sandbox = await driver.start('srv_a', handle, LIMITS)
      await run(sandbox, 'echo kept > file')
      const [container] = await rig().containers(ownerOf(dataDir))
      await rig().client().send('POST', `/containers/${container}/kill`)
      expect((await sandbox.exited).reason).toBe('Its container was killed.')
      const again = await driver.start('srv_a', handle, LIMITS)
      expect((await run(again, 'cat file')).stdout).toBe('kept\n')
      await again.stop()
    }, 60_000)

    test('that someone has removed are missed, and no empty ones take their place', async () => {
      const driver = rig().driver(newDirectory())
      const handle = await driver.create('srv_a')
      await rig().client().send('DELETE', `/volumes/${handle.storage}`)
      await expect(driver.start('srv_a', handle, LIMITS)).rejects.toThrow("The server's files are gone")
      expect(await rig().volumes()).not.toContain(handle.storage)
    })
  })
}

/** Makes an image upon that without berth, or makes it anew. */
async function makeImage(rig: EngineRig, repo: string, Env: readonly string[]): Promise<void> {
  const client = rig.client()
  const id = await client.createContainer(`making-${repo}`, { Image: 'berth-base:latest', Cmd: ['true'] })
  try {
    const query = { container: id, repo, tag: 'latest' }
    await client.send('POST', '/commit', { query, body: { Env } })
  } finally {
    await client.send('DELETE', `/containers/${id}`, { query: { force: '1' } })
  }
}

/** Images of servers. */
export function engineImageTests(rig: () => EngineRig): void {
  describe('an image', () => {
    const newDirectory = dataDirectories()

    test('that is missing is named, with the command that makes it', async () => {
      const driver = rig().driver(newDirectory(), { version: '0.0.0', image: 'berth-server:0.0.0' })
      const refused = driver.create('srv_a')
      await expect(refused).rejects.toBeInstanceOf(ComputeError)
      await expect(refused).rejects.toThrow('Make it with "berth engine prepare".')
      await expect(driver.create('srv_a', { image: 'nobody:has-it', root: false })).rejects.toThrow(
        'docker pull nobody:has-it',
      )
    })

    test('without berth runs servers too: it gets the executable by a volume', async () => {
      const driver = rig().driver(newDirectory())
      const handle = await driver.create('srv_a', { image: 'berth-base:latest', root: false })
      const sandbox = await driver.start('srv_a', handle, LIMITS)
      expect(await run(sandbox, 'echo mine > file; cat file; bun --version; id -u')).toMatchObject({
        stdout: `mine\n${Bun.version}\n1000\n`,
      })
      await sandbox.stop()
    }, 60_000)

    test('gives its variables to commands, and none that the engine or berth has set', async () => {
      const Env = [
        'PATH=/opt/own/bin:/usr/bin:/bin',
        'OWN_HOME=/opt/own',
        'LANG=POSIX',
        'HOME=/root',
        'HTTPS_PROXY=http://a:secret@proxy.test',
      ]
      await makeImage(rig(), 'own-variables', Env)
      const driver = rig().driver(newDirectory())
      const handle = await driver.create('srv_a', { image: 'own-variables:latest', root: false })
      const sandbox = await driver.start('srv_a', handle, LIMITS)
      const { stdout } = await run(sandbox, 'env')
      const variables = new Map(stdout.split('\n').map((line) => line.split(/=(.*)/s, 2) as [string, string]))
      expect(Object.fromEntries(variables)).toMatchObject({
        OWN_HOME: '/opt/own',
        LANG: 'POSIX',
        HOME: '/workspace',
        PATH: expect.stringMatching(
          /^\/opt\/berth\/front:\/opt\/own\/bin:\/usr\/bin:\/bin:.*:\/opt\/berth\/bin$/,
        ),
      })
      expect([...variables.keys()].filter((name) => /^BUN_|HOSTNAME|MIMALLOC|UV_THREAD/i.test(name))).toEqual(
        [],
      )
      // Berth's own way out takes the place of the image's, whose address may have a password.
      expect(variables.get('HTTPS_PROXY')).toBe('http://127.0.0.1:65535')
      expect(stdout).not.toContain('secret')
      await sandbox.stop()
    }, 60_000)

    test('that was made anew is that of the next server, also of one that runs before it is asked for', async () => {
      await makeImage(rig(), 'made-anew', ['ROUND=1'])
      const dataDir = newDirectory()
      const driver = rig().driver(dataDir)
      const logger = createLogger('warn', (line) => process.stderr.write(line), Date.now)
      const ids = ['srv_c', 'srv_b', 'srv_a']
      const compute = new Compute({ driver, logger, spareServers: 1, nextId: () => ids.pop() ?? '' })
      const wish = { image: 'made-anew:latest', root: false }
      compute.prepare(LIMITS, wish)
      const containers = () => rig().containers(ownerOf(dataDir))
      await until('a spare server', async () => (await containers()).length === 1, 20_000)
      await makeImage(rig(), 'made-anew', ['ROUND=2'])
      const sandbox = await compute.provision(LIMITS, wish).start()
      expect((await run(sandbox, 'echo $ROUND')).stdout).toBe('2\n')
      await sandbox.stop()
      await compute.close()
      await driver.close()
    }, 60_000)

    test('of berth takes the place of the one before, which goes unless it has another name', async () => {
      const images = async (): Promise<string[]> => {
        const list = await rig().client().json('GET', '/images/json')
        return (list as { Id: string }[]).map(({ Id }) => Id)
      }
      const before = await images()
      await rig().makeImage()
      expect(await images()).toBeArrayOfSize(before.length)
      const query = { repo: 'named', tag: 'too' }
      await rig().client().send('POST', `/images/berth-server:${VERSION}/tag`, { query })
      await rig().makeImage()
      expect(await images()).toBeArrayOfSize(before.length + 1)
      await rig().client().send('DELETE', '/images/named:too')
    }, 120_000)

    test.skipIf(!everyCombination)(
      'that is made of Debian has pip, which installs for the user of commands',
      async () => {
        const lines: string[] = []
        const base = await debianRoot(rig().client(), rig().name, (line) => void lines.push(line))
        expect(lines.filter((line) => line.startsWith('debootstrap: ')).length).toBeGreaterThan(1)
        const driver = rig().driver(newDirectory())
        const handle = await driver.create('srv_a', { image: base, root: false })
        const sandbox = await driver.start('srv_a', handle, LIMITS)
        const { stdout } = await run(
          sandbox,
          `echo 'from setuptools import setup; setup(name="five", py_modules=["five"])' > setup.py && echo 'print(5)' > five.py &&
          pip install --no-build-isolation . >&2 && cd / && python3 -m five`,
        )
        expect(stdout).toBe('5\n')
        await sandbox.stop()
        await driver.destroy(handle)
        await rig().client().send('DELETE', `/images/${base}`)
      },
      600_000,
    )

    test('without glibc is refused with a sentence', async () => {
      const empty = Bun.spawnSync(['tar', '-c', '-C', newDirectory(), '.']).stdout
      const query = { fromSrc: '-', repo: 'no-libc', tag: 'latest' }
      await rig()
        .client()
        .send('POST', '/images/create', { query, archive: new Blob([empty]) })
      const driver = rig().driver(newDirectory())
      const handle = await driver.create('srv_a', { image: 'no-libc:latest', root: false })
      await expect(driver.start('srv_a', handle, LIMITS)).rejects.toThrow('needs glibc')
      await driver.destroy(handle)
    }, 60_000)

    test('can be changed by root where that was asked for, with rights that stay inside', async () => {
      const driver = rig().driver(newDirectory())
      const handle = await driver.create('srv_a', { image: null, root: true })
      const sandbox = await driver.start('srv_a', handle, LIMITS)
      const { stdout } = await run(
        sandbox,
        "id -u; touch /etc/made && sudo -E A=7 sh -c 'chown $A:$A /etc/made' && stat -c %u /etc/made; mount -t tmpfs x /mnt 2>/dev/null || echo kept",
      )
      expect(stdout).toBe('0\n7\nkept\n')
      await sandbox.stop()
    }, 60_000)
  })
}

/** What happens when berth, the engine or a container is killed. */
export function engineFaultTests(rig: () => EngineRig): void {
  const newDirectory = dataDirectories()

  test('process 1 that fails as it begins says why', async () => {
    const dataDir = newDirectory()
    const driver = rig().driver(dataDir, { isLocal: false, listensAt: '/proc/no-directory/socket' })
    const handle = await driver.create('srv_a')
    await expect(driver.start('srv_a', handle, LIMITS)).rejects.toThrow(
      /^Its container has ended\. error: .*\/proc\/no-directory/,
    )
    expect(await rig().containers(ownerOf(dataDir))).toEqual([])
    await driver.destroy(handle)
  }, 60_000)

  describe('kill -9', () => {
    test.each(['attach', 'exec'])(
      'of berth ends its containers (%s), and the files stay',
      async (carrier) => {
        const dataDir = newDirectory()
        const program = join(import.meta.dir, 'docker-host.ts')
        const host = Bun.spawn(
          [process.execPath, program, rig().socket, dataDir, carrier, 'echo kept > file; sleep 300'],
          {
            stdio: ['ignore', 'pipe', 'inherit'],
          },
        )
        await host.stdout.getReader().read()
        const [storage = ''] = (await rig().volumes()).filter((name) =>
          name.includes(ownerOf(dataDir).slice(0, 8)),
        )
        host.kill('SIGKILL')
        await host.exited
        const containers = () => rig().containers(ownerOf(dataDir))
        await until('all to be gone', async () => (await containers()).length === 0, 20_000)
        const driver = rig().driver(dataDir)
        await driver.takeStock([], []).end()
        const handle = { ...(await driver.create('srv_x')), storage, server: 'srv_host' }
        expect(Buffer.from(await driver.workspace(handle).read('file')).toString()).toBe('kept\n')
        await driver.destroy(handle)
      },
      60_000,
    )

    test('of carriers leaves the output of a command whole', async () => {
      const driver = rig().driver(newDirectory(), { isLocal: false })
      const sandbox = await driver.start('srv_a', await driver.create('srv_a'), LIMITS)
      const output = run(
        sandbox,
        'for i in $(seq 40); do head -c 500000 /dev/zero | tr "\\\\0" x; sleep 0.05; done',
      )
      let cuts = 0
      const cutting = setInterval(() => {
        cuts += rig().killCarriers()
      }, 700)
      const { stdout, exitCode } = await output
      clearInterval(cutting)
      expect({ exitCode, length: stdout.length }).toEqual({ exitCode: 0, length: 20_000_000 })
      expect(cuts).toBeGreaterThan(1)
      await sandbox.stop()
    }, 60_000)

    test('of the engine ends servers with a reason; they start again on the next one, with their files', async () => {
      const driver = rig().driver(newDirectory())
      const handle = await driver.create('srv_a')
      const sandbox = await driver.start('srv_a', handle, LIMITS)
      await run(sandbox, 'echo kept > file')
      await rig().endDaemon('SIGKILL')
      expect((await sandbox.exited).reason).toContain('cannot be reached')
      await expect(driver.start('srv_a', handle, LIMITS)).rejects.toThrow('Start the engine')
      await rig().startDaemon()
      const again = await driver.start('srv_a', handle, LIMITS)
      expect((await run(again, 'cat file')).stdout).toBe('kept\n')
      await again.stop()
    }, 120_000)

    test('of the engine and another one at its address: no server starts there, and none is removed', async () => {
      const driver = rig().driver(newDirectory())
      const handle = await driver.create('srv_a')
      await rig().endDaemon('SIGTERM')
      await rig().startDaemon('others')
      try {
        await expect(driver.start('srv_a', handle, LIMITS)).rejects.toThrow('on another engine')
        await expect(driver.destroy(handle)).rejects.toThrow('on another engine')
      } finally {
        await rig().endDaemon('SIGTERM')
        await rig().startDaemon()
      }
      await driver.destroy(handle)
    }, 120_000)
  })
}
