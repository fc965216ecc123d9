import { describe, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { ComputeError } from '../../../src/compute/sandbox.ts'
import { Bench, run, type Subject, until } from '../bench.ts'
import { openTerminal, show } from '../terminal.ts'
import { sharedServer } from './shared-server.ts'

/** Ctrl-C, Ctrl-D, Ctrl-Z. */
const [CTRL_C, CTRL_D, CTRL_Z] = ['\x03', '\x04', '\x1a']

/** How a command runs on a terminal. */
export function terminalTests(name: Subject): void {
  describe('a terminal', () => {
    const server = sharedServer(name)

    test('is one on stdin, stdout and stderr, the controlling one, and has the size and TERM', async () => {
      const sandbox = server()
      const command = 'test -t 0 && test -t 1 && test -t 2 && stty size </dev/tty && echo "$TERM"'
      expect(await show(sandbox, command)).toEqual({ exitCode: 0, text: '40 120\r\nxterm-256color\r\n' })
    })

    test.each([
      ['true', 0],
      ['exit 7', 7],
      ['no-such-program', 127],
      ['kill -TERM $$', 143],
      ['kill -KILL $$', 137],
    ])('%p on it exits with %p', async (command, exitCode) => {
      expect((await show(server(), command)).exitCode).toBe(exitCode)
    })

    test('has the environment, working folder and limits of every command', async () => {
      const sandbox = server()
      await run(sandbox, 'mkdir below')
      const list =
        'env | grep -v -e INVOCATION_ID -e GIVEN -e TERM | sort; ulimit -a; pwd; cat /proc/self/limits'
      const rest = { cwd: 'below', env: { GIVEN: 'a b\nc' } }
      const { stdout } = await run(sandbox, list, rest)
      expect((await show(sandbox, list, rest)).text.replaceAll('\r', '')).toBe(stdout)
      const given = 'printf %s "$GIVEN" | od -c | head -n 1; echo "$TERM"'
      const own = await show(sandbox, given, { env: { GIVEN: 'a b\nc', TERM: 'dumb' } })
      expect(own.text).toBe('0000000   a       b  \\n   c\r\ndumb\r\n')
    })

    test('takes commands of any length, and refuses a folder that does not exist', async () => {
      const sandbox = server()
      const long = `: '${'x'.repeat(300_000)}'; ls /proc/self/fd | tr '\\n' ' '; exit 5`
      expect(await show(sandbox, long)).toEqual({ exitCode: 5, text: '0 1 2 3 ' })
      expect(show(sandbox, 'true', { cwd: 'nowhere' })).rejects.toThrow('"nowhere" does not exist')
      expect(await show(sandbox, 'echo well')).toEqual({ exitCode: 0, text: 'well\r\n' })
    })

    test('hands on what is typed, and its end', async () => {
      const terminal = openTerminal(server(), 'read -r line; echo "got $line"; wc -c')
      terminal.type('hello\n')
      await terminal.shows('got hello')
      terminal.type(`four\n${CTRL_D}`)
      expect(await terminal.exit).toMatchObject({ exitCode: 0 })
      expect(terminal.text).toEndWith('four\r\n5\r\n')
    })

    test('can have a standard input of its own of any size beside it', async () => {
      const stdin = new Uint8Array(1_000_001).fill(120)
      const command = `: '${'x'.repeat(200_000)}'; test -t 0 || wc -c; ls /proc/self/fd | wc -l; read -r a </dev/tty; echo "$a"`
      const terminal = openTerminal(server(), command, { stdin })
      await terminal.shows('1000001\r\n4\r\n')
      terminal.type('typed\n')
      await terminal.exit
      expect(terminal.text).toEndWith('\r\ntyped\r\ntyped\r\n')
    })

    test('keeps what is typed until a program reads it, 200 KB at once', async () => {
      const terminal = openTerminal(
        server(),
        'stty raw -echo; echo ready; sleep 0.3; head -c 200000 | tr -d x | wc -c',
      )
      await terminal.shows('ready')
      terminal.type('x'.repeat(200_000))
      expect((await terminal.exit).exitCode).toBe(0)
      expect(terminal.text.trim()).toEndWith('\n0')
    })

    test('keeps a megabyte that is typed while nobody reads, says how much is left, and loses none', async () => {
      await using bench = new Bench(name)
      const sandbox = await bench.start()
      const terminal = openTerminal(
        sandbox,
        'stty raw -echo; echo ready; until [ -e read ]; do sleep 0.05; done; head -c 1000000 | tr -d x | wc -c',
      )
      await terminal.shows('ready')
      terminal.type('x'.repeat(1_000_000))
      await until('the terminal to take what it has room for', () => terminal.unread < 1_000_000)
      expect(terminal.unread).toBeGreaterThan(900_000)
      await run(sandbox, 'touch read')
      expect((await terminal.exit).exitCode).toBe(0)
      expect(terminal.text.trim()).toEndWith('\n0')
      expect(terminal.unread).toBe(0)
    })

    test('has started when its command runs, and fails to where it cannot', async () => {
      await using bench = new Bench(name)
      const sandbox = await bench.start()
      const terminal = openTerminal(sandbox, 'echo $$; sleep 300')
      await terminal.pid
      terminal.cancel()
      await terminal.exit
      const nowhere = openTerminal(sandbox, 'true', { cwd: 'nowhere' })
      nowhere.exit.catch(() => {})
      expect(nowhere.pid).rejects.toThrow('"nowhere" does not exist')
    })

    test('tells programs when its size changes', async () => {
      const command = "trap 'stty size; exit 0' WINCH; echo up; while :; do sleep 0.05; done"
      const terminal = openTerminal(server(), command)
      await terminal.shows('up')
      terminal.resize({ columns: 200, rows: 50 })
      expect((await terminal.exit).exitCode).toBe(0)
      expect(terminal.text).toContain('50 200')
    })

    test('ends the job in front at Ctrl-C, not what a shell does after it', async () => {
      await using bench = new Bench(name)
      const sandbox = await bench.start()
      const terminal = openTerminal(sandbox, 'trap : INT; echo up; sleep 300; echo "ended $?"')
      await until('the job in front', () => isAsleep(bench))
      terminal.type(CTRL_C)
      expect((await terminal.exit).exitCode).toBe(0)
      expect(terminal.text).toContain('ended 130')
      const plain = openTerminal(sandbox, 'echo up; sleep 300')
      await until('the job in front', () => isAsleep(bench))
      plain.type(CTRL_C)
      expect((await plain.exit).exitCode).toBe(130)
    })

    test('gives an interactive shell job control', async () => {
      await using bench = new Bench(name)
      const terminal = openTerminal(await bench.start(), 'PS1="ready> " exec sh -i')
      await terminal.shows('ready> ')
      terminal.type('sleep 300\n')
      await until('the job', () => isAsleep(bench))
      terminal.type(CTRL_Z)
      await terminal.shows('Stopped')
      terminal.type('jobs; kill %1; exit 3\n')
      // A shell may want to be told twice while it has jobs.
      terminal.type('exit 3\n')
      expect((await terminal.exit).exitCode).toBe(3)
      expect(terminal.text).not.toContain('job control turned off')
    })

    test('of a command is another than that of the next, of the same server too', async () => {
      const sandbox = server()
      const one = openTerminal(sandbox, 'read -r a; echo "one $a"')
      const two = openTerminal(sandbox, 'read -r a; echo "two $a"')
      one.type('1\n')
      two.type('2\n')
      await Promise.all([one.exit, two.exit])
      expect([one.text, two.text]).toEqual(['1\r\none 1\r\n', '2\r\ntwo 2\r\n'])
    })
  })
}

/** How output of a terminal arrives. */
export function terminalOutputTests(name: Subject): void {
  describe('output of a terminal', () => {
    const server = sharedServer(name)

    test('is complete and in order, and all there when the command has ended', async () => {
      const { text } = await show(server(), '(trap "" HUP; sleep 300) & seq 1 100000')
      const lines = text.trimEnd().split('\r\n')
      expect(lines.length).toBe(100_000)
      expect(lines.every((line, index) => line === String(index + 1))).toBe(true)
    })

    test('that nobody takes holds the command back, not others, and none is lost', async () => {
      await using bench = new Bench(name)
      const sandbox = await bench.start()
      const gate = Promise.withResolvers<void>()
      let received = 0
      const { exit } = sandbox.terminal({
        command: 'stty -opost; head -c 3000000 /dev/zero; echo -n done > done',
        size: { columns: 80, rows: 24 },
        timeoutMs: 20_000,
        onOutput(data) {
          received += data.length
          return gate.promise
        },
      })
      await until('the first output', () => received > 0)
      for (let n = 0; n < 20; n += 1) expect((await show(sandbox, 'echo other')).text).toBe('other\r\n')
      expect((await run(sandbox, 'cat done 2>/dev/null')).stdout).toBe('')
      expect(received).toBeLessThanOrEqual(256 * 1024)
      gate.resolve()
      expect(await exit).toMatchObject({ exitCode: 0 })
      expect(received).toBe(3_000_000)
    })

    test('does not end with a command that closes it for a while', async () => {
      const command = 'exec </dev/null >/dev/null 2>&1; sleep 0.2; exec >/dev/tty; echo back'
      expect((await show(server(), command)).text).toBe('back\r\n')
    })

    test('whose receiver fails ends the command with that failure', async () => {
      await using bench = new Bench(name)
      const { exit } = (await bench.start()).terminal({
        command: 'echo hi; sleep 300',
        size: { columns: 80, rows: 24 },
        timeoutMs: 20_000,
        onOutput() {
          throw new Error('the reader is gone')
        },
      })
      expect(exit).rejects.toThrow('the reader is gone')
      await exit.catch(() => {})
      await until('the command to end', async () => (await bench.commands()).length === 0)
    })
  })
}

/** How a command on a terminal ends. */
export function terminalEndTests(name: Subject): void {
  describe('the end of a command on a terminal', () => {
    test('by cancelling takes all along that it started, in sessions of their own too', async () => {
      await using bench = new Bench(name)
      const terminal = openTerminal(
        await bench.start(),
        'setsid -f sleep 300; nohup sleep 300 >/dev/null 2>&1 & echo up; sleep 300',
      )
      await terminal.shows('up')
      await until('all to run', async () => (await bench.commands()).length >= 4)
      terminal.cancel()
      expect((await terminal.exit).exitCode).toBe(143)
      expect(await bench.commands()).toEqual([])
    })

    test('gives it a chance to say something, and comes by SIGKILL to one that ignores SIGTERM', async () => {
      await using bench = new Bench(name)
      const sandbox = await bench.start()
      const loop = 'while :; do sleep 0.02; done'
      const polite = openTerminal(sandbox, `trap 'echo bye; exit 9' TERM; echo up; ${loop}`)
      const deaf = openTerminal(sandbox, `trap '' TERM HUP INT; echo up; ${loop}`)
      await Promise.all([polite.shows('up'), deaf.shows('up')])
      polite.cancel()
      deaf.cancel(200)
      expect((await polite.exit).exitCode).toBe(9)
      expect(polite.text).toContain('bye')
      expect((await deaf.exit).exitCode).toBe(137)
    })

    test('by a hang-up takes the shell and its jobs along, stopped ones too, then what ignores it', async () => {
      await using bench = new Bench(name)
      const terminal = openTerminal(await bench.start(), 'PS1="ready> " exec sh -i')
      await terminal.shows('ready> ')
      terminal.type('nohup sleep 302 >/dev/null 2>&1 &\n')
      terminal.type('sleep 301\n')
      await until('the job in front', () => isAsleep(bench, '301'))
      terminal.type(CTRL_Z)
      await terminal.shows('Stopped')
      terminal.hangUp()
      expect((await terminal.exit).exitCode).toBe(129)
      expect(await bench.commands()).toEqual([])
    })

    test('comes at its timeout', async () => {
      await using bench = new Bench(name)
      const result = openTerminal(await bench.start(), 'sleep 300', { timeoutMs: 200 })
      expect(await result.exit).toMatchObject({ timedOut: true, exitCode: 143 })
    })

    test('hangs up what is left on the terminal, and leaves alone what made a session of its own', async () => {
      await using bench = new Bench(name)
      const sandbox = await bench.start()
      const terminal = openTerminal(sandbox, 'sleep 301 & setsid -f sleep 302; read -r line')
      const sleepers = async () =>
        (await bench.commands()).map(commandLine).filter((line) => /^sleep/.test(line))
      await until('both to sleep', async () => (await sleepers()).length === 2)
      terminal.type('\n')
      await terminal.exit
      await until('the hang-up', async () => (await sleepers()).length === 1)
      expect(await sleepers()).toEqual(['sleep 302'])
      await show(sandbox, 'setsid -f sleep 300', { background: 'ends' })
      await until('the end of the background', async () => (await bench.commands()).length === 1)
    })

    test('comes with the end of the server, after which none is opened', async () => {
      await using bench = new Bench(name)
      const sandbox = await bench.start()
      const terminal = openTerminal(sandbox, "trap '' TERM HUP; echo up; while :; do sleep 0.1; done")
      await terminal.shows('up')
      await sandbox.stop()
      expect((await terminal.exit).exitCode).toBe(137)
      terminal.type('too late')
      terminal.resize({ columns: 1, rows: 1 })
      terminal.cancel()
      expect(await bench.commands()).toEqual([])
      expect(() => openTerminal(sandbox, 'true')).toThrow(ComputeError)
    })

    test('leaves no terminal open, a hundred times', async () => {
      await using bench = new Bench(name)
      const sandbox = await bench.start()
      const before = await openFiles()
      for (let n = 0; n < 10; n += 1) {
        await Promise.all(Array.from({ length: 10 }, (_, each) => show(sandbox, `echo ${each}`)))
      }
      await until('all to be closed', async () => (await openFiles()) <= before + 2)
    })
  })
}

/** Number of the terminals that are open on this machine, and of the descriptors of this process. */
async function openFiles(): Promise<number> {
  const count = Number(await Bun.file('/proc/sys/kernel/pty/nr').text())
  const own = Bun.spawnSync(['sh', '-c', `ls /proc/${process.pid}/fd | wc -l`]).stdout.toString()
  return count + Number(own)
}

function commandLine(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ').trim()
  } catch {
    return ''
  }
}

/**
 * Whether a command has become `sleep`: between its fork and that, a shell's child is not yet in front, and minds
 * signals as the shell does.
 */
async function isAsleep(bench: Bench, seconds = ''): Promise<boolean> {
  const commands = await bench.commands()
  return commands.some((pid) => commandLine(pid).startsWith(`sleep ${seconds}`))
}
