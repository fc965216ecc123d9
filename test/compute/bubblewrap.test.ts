import { describe, expect, test } from 'bun:test'
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { Bench, driverOn, isSandboxdSafe, LIMITS, run, TEST_PATH, until } from './bench.ts'
import { runScript, systemCallTests } from './confinement.ts'
import { conformance } from './conformance.ts'
import { outliveTests } from './outlive.ts'
import { openTerminal, show } from './terminal.ts'
import { terminalReachTests } from './terminal-reach.ts'

const isRoot = process.getuid?.() === 0
const canLimitTerminals =
  isRoot || ['nsenter', 'mount'].every((name) => Bun.which(name, { PATH: TEST_PATH }) !== null)
if (!canLimitTerminals) console.error('SKIP the limit of terminals: nsenter or mount is not installed')

await conformance('bubblewrap', () => {
  describe('isolation', () => {
    terminalReachTests('bubblewrap')
    systemCallTests('bubblewrap')
    outliveTests()

    test('shows nothing of the host but the system’s programs', async () => {
      await using bench = new Bench('bubblewrap')
      const sandbox = await bench.start()
      const { stdout } = await run(sandbox, 'ls -A /')
      const shown = [
        'berth',
        'bin',
        'dev',
        'etc',
        'lib',
        'lib32',
        'lib64',
        'libx32',
        'opt',
        'proc',
        'run',
        'sbin',
        'sys',
        'tmp',
        'usr',
        // A way to the server's own caches.
        'var',
        'workspace',
      ]
      expect(
        stdout
          .trim()
          .split('\n')
          .filter((name) => !shown.includes(name)),
      ).toEqual([])
      expect((await run(sandbox, 'test ! -e /sys || ls -A /sys /sys/fs')).stdout).toMatch(
        /^(?:\/sys:\nfs\n\n\/sys\/fs:\ncgroup\n)?$/,
      )
      expect((await run(sandbox, 'ls -A /workspace /tmp')).stdout).toBe('/tmp:\n\n/workspace:\n')
    })

    test('hides the data folder and other servers, also through links', async () => {
      await using bench = new Bench('bubblewrap')
      const sandbox = await bench.start()
      const other = await bench.start('srv_b')
      await run(other, 'echo secret > file')
      const path = join(bench.dataDir, 'servers/srv_b/workspace/file')
      const result = await run(sandbox, `cat ${path}; ln -s ${path} link; cat link; cat /etc/shadow`)
      expect(result.stdout).toBe('')
      expect(result.exitCode).toBe(1)
    })

    test('keeps the system from being changed or mounted anew', async () => {
      await using bench = new Bench('bubblewrap')
      const sandbox = await bench.start()
      const attempts = [
        'touch /usr/berth-was-here',
        'touch /berth-was-here',
        'touch /etc/berth-was-here',
        'touch /dev/berth-was-here',
        'echo x >> /berth',
        'mount -o remount,rw /usr',
        'mount --bind /workspace /usr',
        'umount /usr',
        'chroot / true',
        'mknod disk b 8 0',
        'unshare --user --map-root-user --mount sh -c "mount -o remount,rw,bind /usr && touch /usr/berth-was-here"',
      ]
      for (const command of attempts) {
        const { exitCode } = await run(sandbox, command)
        expect(`${command}: ${exitCode === 0}`).toBe(`${command}: false`)
      }
      expect(existsSync('/usr/berth-was-here')).toBe(false)
    })

    test('lets no setting of the kernel be written, though to the kernel a root is still root', async () => {
      await using bench = new Bench('bubblewrap')
      const sandbox = await bench.start()
      expect((await run(sandbox, 'find /proc/sys -type f -writable | head -n 3')).stdout).toBe('')
      const before = readFileSync('/proc/sys/kernel/threads-max', 'utf8')
      const { exitCode } = await run(sandbox, `echo ${before.trim()} > /proc/sys/kernel/threads-max`)
      expect(exitCode).not.toBe(0)
    })

    test('shows nothing of the kernel that is only for root, and has nobody change who goes first without memory', async () => {
      await using bench = new Bench('bubblewrap')
      const sandbox = await bench.start()
      const secret = 'slabinfo vmallocinfo timer_list kpagecount kpageflags kpagecgroup pagetypeinfo kcore'
      const read = `cd /proc && for file in ${secret}; do head -c 1 $file 2>/dev/null && echo $file; done; true`
      expect((await run(sandbox, read)).stdout).toBe('')
      const { exitCode } = await run(sandbox, '(echo 1000 > /proc/$PPID/oom_score_adj) 2>/dev/null')
      expect(exitCode).not.toBe(0)
      const everyday =
        'echo out > /dev/stdout; echo x > /tmp/x; echo x > /dev/shm/x; echo x > x; echo x > /dev/null'
      expect(await run(sandbox, everyday)).toMatchObject({ exitCode: 0, stdout: 'out\n', stderr: '' })
    })

    test('lets commands make no user namespace, in which they could lift their own limits', async () => {
      await using bench = new Bench('bubblewrap')
      const probe = await bench.driver.probe()
      if (probe.available && probe.notes) return console.error(`SKIP: ${probe.notes.join('; ')}`)
      expect((await run(await bench.start(), 'unshare --user true')).exitCode).not.toBe(0)
    })

    test('leaves no capability, now or through a set-user-id program', async () => {
      await using bench = new Bench('bubblewrap')
      const { stdout } = await run(
        await bench.start(),
        'grep -E "^(Cap|NoNewPrivs)" /proc/self/status; id -u',
      )
      const sets = [...stdout.matchAll(/^Cap(\w+):\t(\w+)$/gm)].map(([, name, value]) => [
        name,
        Number(`0x${value}`),
      ])
      expect(sets).toEqual([
        ['Inh', 0],
        ['Prm', 0],
        ['Eff', 0],
        ['Bnd', 0],
        ['Amb', 0],
      ])
      expect(stdout).toContain('NoNewPrivs:\t1')
      expect(stdout).toEndWith('1000\n')
    })

    test('shows no process of the host, and no environment or paths of berth’s', async () => {
      process.env.BERTH_TEST_SECRET = 'leak'
      try {
        await using bench = new Bench('bubblewrap')
        const sandbox = await bench.start()
        const { stdout } = await run(sandbox, 'ls /proc | grep -c "^[0-9]"')
        expect(Number(stdout)).toBeLessThan(8)
        const told = await run(sandbox, 'cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline 2>/dev/null')
        expect(told.stdout).not.toContain('leak')
        expect(told.stdout).not.toContain(bench.dataDir)
      } finally {
        delete process.env.BERTH_TEST_SECRET
      }
    })

    test('lets commands neither signal nor trace berth, nor sandboxd be traced', async () => {
      await using bench = new Bench('bubblewrap')
      const sandbox = await bench.start()
      expect((await run(sandbox, `kill -0 ${process.pid}`)).exitCode).not.toBe(0)
      expect((await run(sandbox, 'readlink /proc/$PPID/fd/3')).exitCode).not.toBe(0)
      expect((await run(sandbox, 'cat /proc/$PPID/environ')).exitCode).not.toBe(0)
    })

    test('has its own host name, shared memory and terminal session', async () => {
      await using bench = new Bench('bubblewrap')
      const { stdout } = await run(
        await bench.start(),
        'hostname; cat < /dev/tty 2>/dev/null || echo no terminal',
      )
      expect(stdout).toBe('srv_a\nno terminal\n')
      expect(hostname()).not.toBe('srv_a')
    })

    test('limits what may be written to memory', async () => {
      await using bench = new Bench('bubblewrap')
      const sandbox = await bench.start('srv_a', { memoryBytes: 2 ** 28, storageBytes: 2 ** 30 })
      const { stdout } = await run(sandbox, 'df -B1 --output=size /tmp /dev/shm /run | tail -n +2')
      const sizes = stdout.trim().split('\n').map(Number)
      expect(sizes.every((size) => size > 0 && size <= 2 ** 27)).toBe(true)
    })

    test('survives a command that kills all it can: the server ends and can be started again', async () => {
      await using bench = new Bench('bubblewrap')
      const handle = await bench.driver.create('srv_a')
      const sandbox = await bench.startAgain('srv_a', handle)
      if (await isSandboxdSafe(sandbox)) return
      // Nothing is killed unless the command is in a PID namespace of its own.
      const own = '[ "$(ls /proc | grep -c "^[0-9]")" -lt 10 ]'
      const result = await run(sandbox, `${own} && kill -KILL -1; sleep 300`)
      expect(result.exitCode).toBe(137)
      await sandbox.exited
      expect((await run(await bench.startAgain('srv_a', handle), 'echo again')).stdout).toBe('again\n')
    })

    test.skipIf(!canLimitTerminals)(
      'leaves the pseudo-terminals of the machine to others: it has 64, and berth’s terminals are among them',
      async () => {
        await using bench = new Bench('bubblewrap')
        const sandbox = await bench.start()
        const isLimited = async (): Promise<boolean> =>
          (await run(sandbox, 'cat /proc/self/mounts')).stdout.includes(',max=64 ')
        // If berth is root, before the first command.
        if (isRoot) expect(await isLimited()).toBe(true)
        else await until('the limit', isLimited)
        const terminals = Array.from({ length: 20 }, () => openTerminal(sandbox, 'echo up; sleep 300'))
        await Promise.all(terminals.map((terminal) => terminal.shows('up')))
        const { stdout } = await runScript(
          sandbox,
          `
          import { openSync } from 'node:fs'
          let count = 0
          try {
            for (; count < 1000; count += 1) openSync('/dev/ptmx', 'r+')
          } catch ({ code }) {
            console.log(count, code)
          }`,
        )
        expect(stdout).toBe('44 ENOSPC\n')
        for (const terminal of terminals) terminal.cancel()
        await Promise.all(terminals.map(({ exit }) => exit))
        expect((await show(sandbox, 'tty')).exitCode).toBe(0)
        // The machine's own mount has no such limit.
        expect(readFileSync('/proc/self/mounts', 'utf8')).not.toContain('max=64')
      },
    )

    test('is found out also while what earlier berths have left is removed', async () => {
      for (let round = 0; round < 5; round++) {
        await using bench = new Bench('bubblewrap')
        const { driver } = bench
        const remains = driver.takeStock([], [])
        const probe = await driver.probe()
        if (!probe.available) throw new Error(probe.reason)
        let isOver = false
        const looking = probe.enforced().finally(() => {
          isOver = true
        })
        looking.catch(() => {})
        while (!isOver) {
          await Promise.all([remains.end(), remains.remove()])
          await Bun.sleep(0)
        }
        expect(await looking).toMatchObject({ isolation: 'bubblewrap' })
        expect(readdirSync(join(bench.dataDir, 'servers'))).toEqual([])
      }
    })

    test('shows tools of PATH outside /usr with the libraries beside them, never a home', async () => {
      await using bench = new Bench('bubblewrap')
      const home = join(bench.dataDir, 'tools')
      for (const folder of ['bin', 'lib', 'private']) mkdirSync(join(home, folder), { recursive: true })
      writeFileSync(join(home, 'bin/tool'), '#!/bin/sh\ncat "$(dirname "$0")/../lib/text"\n', { mode: 0o755 })
      writeFileSync(join(home, 'lib/text'), 'from the library\n')
      writeFileSync(join(home, 'private/key'), 'secret\n')
      const driver = driverOn('bubblewrap', bench.dataDir, `${home}/bin:${TEST_PATH}`)
      const sandbox = await driver.start('srv_t', await driver.create('srv_t'), LIMITS)
      try {
        expect((await run(sandbox, 'tool')).stdout).toBe('from the library\n')
        expect((await run(sandbox, `ls ${home}`)).stdout).toBe('bin\nlib\n')
      } finally {
        await sandbox.stop()
      }
      expect(readdirSync(home).sort()).toEqual(['bin', 'lib', 'private'])
    })
  })
})
