import { describe, expect, test } from 'bun:test'
import { mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { Bench, run } from './bench.ts'
import { runScript, systemCallTests } from './confinement.ts'
import { conformance } from './conformance.ts'
import { terminalReachTests } from './terminal-reach.ts'

await conformance('landlock', () => {
  describe('isolation', () => {
    terminalReachTests('landlock')
    systemCallTests('landlock')

    test('keeps the data folder, homes and other servers from being read, changed or listed', async () => {
      await using bench = new Bench('landlock')
      const sandbox = await bench.start()
      const other = await bench.start('srv_b')
      await run(other, 'echo secret > file')
      const secret = join(bench.dataDir, 'secret')
      writeFileSync(secret, 'kept')
      const file = join(bench.dataDir, 'servers/srv_b/workspace/file')
      const attempts = [
        `cat ${file}`,
        `cat ${secret}`,
        `echo x > ${secret}`,
        `truncate -s 0 ${secret}`,
        `rm ${secret}`,
        `mv ${secret} stolen`,
        `ln ${secret} stolen`,
        `ln -s ${secret} link && cat link`,
        `touch ${bench.dataDir}/new`,
        `mkdir ${bench.dataDir}/new`,
        `ls ${bench.dataDir}`,
        `ls ${homedir()}`,
        `touch ${homedir()}/berth-was-here`,
        'cat /etc/shadow',
        'touch /usr/berth-was-here',
        'touch /tmp/berth-was-here',
        'touch /dev/shm/berth-was-here',
        'ls /dev/shm',
        'ls /dev/pts',
      ]
      for (const command of attempts) {
        const { exitCode } = await run(sandbox, command)
        expect(`${command}: ${exitCode === 0}`).toBe(`${command}: false`)
      }
      expect(readFileSync(secret, 'utf8')).toBe('kept')
    })

    test('gives no file the rights of its owner or group, so nobody else of the machine can use them', async () => {
      await using bench = new Bench('landlock')
      const program = join(bench.dataDir, 'program')
      writeFileSync(program, '', { mode: 0o755 })
      const sandbox = await bench.start()
      for (const bits of ['u+s', 'g+s', '4711', '6755']) {
        const { stdout } = await run(
          sandbox,
          `touch own; for f in own ${program}; do chmod ${bits} $f || echo no; done`,
        )
        expect([bits, stdout]).toEqual([bits, 'no\nno\n'])
      }
      expect((await run(sandbox, 'mkdir d && chmod 1777 d && chmod 700 own && cp -p own d')).exitCode).toBe(0)
      expect(statSync(program).mode & 0o7777).toBe(0o755)
    })

    test('leaves root no powers, and nobody a way to new ones', async () => {
      await using bench = new Bench('landlock')
      const { stdout } = await run(await bench.start(), 'cat /proc/self/status')
      const value = (name: string) => new RegExp(`^${name}:\\t(\\w+)$`, 'm').exec(stdout)?.[1]
      expect([value('CapEff'), value('CapPrm'), value('NoNewPrivs')]).toEqual([
        '0'.repeat(16),
        '0'.repeat(16),
        '1',
      ])
      if (process.getuid?.() === 0) expect(value('CapBnd')).toBe('0'.repeat(16))
    })

    test('keeps other processes from being signalled, traced or read', async () => {
      await using bench = new Bench('landlock')
      const probe = await bench.driver.probe()
      const sandbox = await bench.start()
      expect((await run(sandbox, `cat /proc/${process.pid}/environ`)).exitCode).not.toBe(0)
      expect((await run(sandbox, `readlink /proc/${process.pid}/fd/0`)).exitCode).not.toBe(0)
      const gaps = probe.available ? (probe.notes ?? []) : []
      if (gaps.some((gap) => gap.includes('signals'))) {
        console.error(`SKIP signals: ${gaps.join('; ')}`)
        return
      }
      expect((await run(sandbox, `kill -0 ${process.pid}`)).exitCode).not.toBe(0)
    })

    test('keeps commands from the Unix sockets of the user’s programs, and leaves processes their pipes and pairs', async () => {
      for (const allowUnixSockets of [false, true]) {
        await using bench = new Bench('landlock', { allowUnixSockets })
        const path = join(bench.dataDir, 'agent.sock')
        using _agent = Bun.listen({ unix: path, socket: { data() {} } })
        const { stdout, stderr } = await runScript(
          await bench.start(),
          `
          const [socket, connect] = arm ? [198, 203] : [41, 42]
          const address = Buffer.concat([Buffer.from([1, 0]), Buffer.from('${path}\\0')])
          const made = call(socket, 1, 1)
          const reached = made < 0 ? made : call(connect, made, ptr(address), address.length)
          const told = Promise.withResolvers()
          Bun.spawn({
            cmd: [process.execPath, '-e', 'process.send("a message"); process.disconnect()'],
            ipc: (text) => told.resolve(text),
          })
          console.log(reached, await told.promise)`,
        )
        expect(`${stdout}${stderr}`).toBe(`${allowUnixSockets ? 0 : -97} a message\n`)
        const probe = await bench.driver.probe()
        const notes = (probe.available ? (probe.notes ?? []) : []).join('; ')
        expect(notes.includes('--allow-unix-sockets')).toBe(!allowUnixSockets)
        expect(notes.includes('SSH agent')).toBe(allowUnixSockets)
      }
    })

    test('gives each start an empty folder for temporary files', async () => {
      await using bench = new Bench('landlock')
      const handle = await bench.driver.create('srv_a')
      const sandbox = await bench.startAgain('srv_a', handle)
      await run(sandbox, 'touch "$TMPDIR/left"; ln -s / "$TMPDIR/link"')
      await sandbox.stop()
      mkdirSync(join(bench.dataDir, 'servers/srv_a/tmp/more'))
      const again = await bench.startAgain('srv_a', handle)
      expect((await run(again, 'ls -A "$TMPDIR"')).stdout).toBe('')
    })
  })
})
