import { expect, test } from 'bun:test'
import { closeSync, readlinkSync, readSync } from 'node:fs'
import type { Isolation } from '../../src/config/config.ts'
import { loadPtyCalls } from '../../src/system/calls.ts'
import { Bench, run, until } from './bench.ts'
import { openTerminal, show } from './terminal.ts'

/** Prints into every terminal that it finds by name or in the hands of a process, and tries to type there. */
const INTRUDE = `
for tty in /dev/pts/[0-9]* /dev/console /dev/tty[0-9]* /proc/[0-9]*/fd/[0-9]* "$@"; do
  [ -c "$tty" ] && [ "$(readlink -f "$tty")" != "$(readlink -f /proc/self/fd/0)" ] || continue
  (echo intruder > "$tty") 2>/dev/null
  (stty -F "$tty" -echo) 2>/dev/null
  (perl -e 'open(T, "+<", $ARGV[0]) && ioctl(T, 0x5412, "x") && exit 0; exit 1' "$tty") 2>/dev/null
done; true`

/** What isolation promises about terminals: those of berth, of this machine's users and of other servers are out of reach. */
export function terminalReachTests(name: Isolation): void {
  test('reaches no terminal of this machine or another server, by name or by process', async () => {
    await using bench = new Bench(name)
    const calls = loadPtyCalls()
    // One of the same user's, as berth's own is.
    const pty = calls.open()
    try {
      const other = await bench.start('srv_b')
      const sandbox = await bench.start()
      const neighbour = openTerminal(other, 'echo up; sleep 300')
      await neighbour.shows('up')
      const path = readlinkSync(`/proc/self/fd/${pty.slave}`)
      const { exitCode } = await show(sandbox, `set -- ${path}; ${INTRUDE}`)
      expect(exitCode).toBe(0)
      await run(sandbox, INTRUDE)
      neighbour.cancel()
      await neighbour.exit
      expect(neighbour.text).toBe('up\r\n')
      expect(() => readSync(pty.master, new Uint8Array(100))).toThrow('EAGAIN')
    } finally {
      closeSync(pty.master)
      closeSync(pty.slave)
    }
  })

  test('has nothing of the terminal that berth itself was started on', async () => {
    await using bench = new Bench(name)
    const program = [process.execPath, `${import.meta.dir}/conformance/host.ts`, name, bench.dataDir]
    const shown: string[] = []
    const host = Bun.spawn([...program, `${INTRUDE}; (: </dev/tty) 2>/dev/null || touch tried`], {
      terminal: { cols: 80, rows: 24, data: (_, data) => void shown.push(new TextDecoder().decode(data)) },
    })
    const workspace = bench.driver.workspace({ kind: 'local', folder: 'servers/srv_host' })
    await until('the attempt', () => workspace.stat('tried').catch(() => null))
    host.kill('SIGKILL')
    await host.exited
    host.terminal?.close()
    await until('all to be gone', async () => (await bench.commands()).length === 0)
    expect(shown.join('')).toBe('')
  })
}
