import { describe, expect, test } from 'bun:test'
import type { EngineDriver } from '../../src/compute/engine/engine-driver.ts'
import { messageOf } from '../../src/runtime/error-info.ts'
import { LIMITS, run, until } from '../compute/bench.ts'
import { dataDirectories } from './docker-faults.ts'

/**
 * What holds a server to its limits, and what it sees of its own sandboxd.
 *
 * @param links the names of its network links
 */
export function engineLimitTests(
  driverOn: (dataDir: string) => EngineDriver,
  links: readonly string[],
): void {
  describe('a server', () => {
    const newDirectory = dataDirectories()

    test('outlives a command that takes all memory, which is ended', async () => {
      const driver = driverOn(newDirectory())
      const sandbox = await driver.start('srv_a', await driver.create('srv_a'), {
        ...LIMITS,
        memoryBytes: 2 ** 27,
      })
      const hog = await run(sandbox, 'python3 -c "x = bytearray(2**29)"; echo "ended $?"')
      expect(hog.stdout).toMatch(/^ended (?:137|143)\n$/)
      expect((await run(sandbox, 'echo well')).stdout).toBe('well\n')
      await sandbox.stop()
    }, 60_000)

    const bombs = {
      'of shells, which end where they cannot fork': 'f() { f | f & f; }; f',
      'of processes that never end': `python3 -c '
import os
while True:
    try: os.fork()
    except OSError: pass'`,
    }
    test.each(Object.entries(bombs))(
      'outlives a fork bomb %s, while another server works on',
      async (_, command) => {
        const driver = driverOn(newDirectory())
        const [bombed, other] = await Promise.all(
          ['srv_a', 'srv_b'].map(async (id) =>
            driver.start(id, await driver.create(id), { ...LIMITS, processes: 500 }),
          ),
        )
        if (bombed === undefined || other === undefined) throw new Error('no server')
        const bomb = run(bombed, command, { timeoutMs: 3_000 })
        expect((await run(other, 'echo well')).stdout).toBe('well\n')
        await bomb
        // Until the bomb is over, a start of a further process is refused.
        const isWell = () => run(bombed, 'echo well').then(({ stdout }) => stdout === 'well\n', isRefused)
        const isRefused = (error: unknown) => {
          expect(messageOf(error)).toContain('as many as its limit allows')
          return false
        }
        await until('the server to respond', isWell)
        await Promise.all([bombed.stop(), other.stop()])
      },
      60_000,
    )

    test('reads nothing of its sandboxd, and can neither end nor stop it', async () => {
      const driver = driverOn(newDirectory())
      const sandbox = await driver.start('srv_a', await driver.create('srv_a'), LIMITS)
      const tries = [
        'cat /proc/1/environ',
        'ls /proc/1/fd',
        'head -c 1 /proc/1/mem',
        'kill -KILL 1',
        'kill -STOP 1',
      ]
      for (const command of tries) await run(sandbox, command)
      const { stdout } = await run(
        sandbox,
        `for t in environ fd/0 mem; do cat /proc/1/$t 2>/dev/null | head -c 20; done; echo end`,
      )
      expect(stdout).toBe('end\n')
      await sandbox.stop()
    }, 60_000)

    test('has no capability, no network but its own and no root', async () => {
      const driver = driverOn(newDirectory())
      const sandbox = await driver.start('srv_a', await driver.create('srv_a'), LIMITS)
      const look = `grep -E '^(CapEff|CapBnd|NoNewPrivs|Seccomp):' /proc/self/status | tr -d '\\t'; ls /sys/class/net; touch /etc/x 2>/dev/null || echo closed; id -un`
      expect((await run(sandbox, look)).stdout.split('\n')).toEqual([
        ...['CapEff:0000000000000000', 'CapBnd:0000000000000000', 'NoNewPrivs:1', 'Seccomp:2'],
        ...[...links, 'closed', 'berth', ''],
      ])
      await sandbox.stop()
    }, 60_000)
  })
}
