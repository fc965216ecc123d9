import { describe, expect, test } from 'bun:test'
import { ComputeError } from '../../../src/compute/sandbox.ts'
import { Bench, run, type Subject } from '../bench.ts'
import { sharedServer } from './shared-server.ts'

/** How a command runs. */
export function commandTests(name: Subject): void {
  describe('a command', () => {
    const server = sharedServer(name)

    test.each([
      ['true', 0],
      ['false', 1],
      ['exit 7', 7],
      ['no-such-program', 127],
      ['kill -TERM $$', 143],
      ['kill -KILL $$', 137],
      ['kill -SEGV $$', 139],
    ])('%p exits with %p', async (command, exitCode) => {
      const result = await run(server(), command)
      expect(result).toMatchObject({ exitCode, timedOut: false, truncated: false })
    })

    test('has stdout and stderr apart', async () => {
      const result = await run(server(), 'echo out; echo err >&2')
      expect(result).toMatchObject({ stdout: 'out\n', stderr: 'err\n' })
    })

    test('can open /dev/stdin, /dev/stdout and /dev/stderr', async () => {
      const stdin = new TextEncoder().encode('in\n')
      const command = 'cat /dev/stdin; echo out >/dev/stdout; echo err >/dev/stderr'
      const result = await run(server(), command, { stdin })
      expect(result).toMatchObject({ exitCode: 0, stdout: 'in\nout\n', stderr: 'err\n' })
    })

    test('reads standard input of any size, and none where none was given', async () => {
      const sandbox = server()
      const stdin = new Uint8Array(3_000_001).fill(120)
      expect((await run(sandbox, 'wc -c', { stdin })).stdout.trim()).toBe('3000001')
      expect((await run(sandbox, 'wc -c')).stdout.trim()).toBe('0')
    })

    test('reads a stream at its own pace, and sees its end', async () => {
      const sandbox = server()
      const piece = new Uint8Array(100_000).fill(120)
      let sent = 0
      const endless = new ReadableStream<Uint8Array>({
        pull(controller) {
          sent += piece.length
          controller.enqueue(piece)
        },
      })
      expect((await run(sandbox, 'sleep 0.3; head -c 5', { stdin: endless })).stdout).toBe('xxxxx')
      expect(sent).toBeLessThan(2_000_000)
      const stdin = new Blob([new Uint8Array(3_000_001)]).stream()
      expect((await run(sandbox, 'wc -c', { stdin })).stdout.trim()).toBe('3000001')
      const none = new Blob().stream()
      expect((await run(sandbox, 'exec 0<&-; echo on', { stdin: none })).stdout).toBe('on\n')
    })

    test('is cancelled if the stream of its input fails', async () => {
      await using bench = new Bench(name)
      const stdin = new ReadableStream<Uint8Array>({ pull: () => Promise.reject(new Error('broken')) })
      const { exitCode } = await run(await bench.start(), 'cat; echo the end > seen; sleep 20', { stdin })
      expect(exitCode).toBe(143)
    })

    test('may be longer than an argument of a program', async () => {
      const command = `cat <<'END' | wc -c\n${'x'.repeat(1_000_000)}\nEND\nls -l /proc/self/fd | grep -c memfd; exit 5`
      const result = await run(server(), command)
      expect(result).toMatchObject({ exitCode: 5, stdout: '1000001\n0\n' })
    })

    test('runs in the workspace, its home, or in a folder below', async () => {
      const sandbox = server()
      const { stdout } = await run(sandbox, 'mkdir -p a/b; [ "$HOME" = "$PWD" ] && echo home')
      expect(stdout).toBe('home\n')
      const below = await run(sandbox, '[ "$HOME/a/b" = "$PWD" ] && echo below', { cwd: 'a/b' })
      expect(below.stdout).toBe('below\n')
    })

    test('in a folder that does not exist is refused with that reason', async () => {
      const sandbox = server()
      const attempt = run(sandbox, 'true', { cwd: 'nowhere' })
      expect(attempt).rejects.toThrow('"nowhere" does not exist')
      expect(attempt).rejects.toBeInstanceOf(ComputeError)
    })

    test('has a clean environment, nothing of berth’s, and what was given on top', async () => {
      process.env.BERTH_TEST_SECRET = 'leak'
      try {
        await using bench = new Bench(name)
        const sandbox = await bench.start()
        const { stdout } = await run(sandbox, 'env', { env: { GIVEN: 'a b\nc', LANG: 'de' } })
        const names = stdout.split('\n').flatMap((line) => /^([A-Z_]+)=/.exec(line)?.[1] ?? [])
        const base = [
          'GIVEN',
          'HOME',
          'INVOCATION_ID',
          'LANG',
          'LOGNAME',
          'PATH',
          'PWD',
          'SHELL',
          'TERM',
          'TMPDIR',
          'USER',
          // Where nothing else leads outside.
          ...(sandbox.hasImage && sandbox.outboundControl !== null
            ? ['ALL_PROXY', 'HTTPS_PROXY', 'HTTP_PROXY', 'NODE_USE_ENV_PROXY', 'NO_PROXY']
            : []),
        ].sort()
        expect(names.filter((one) => one !== 'TAR_OPTIONS').sort()).toEqual(base)
        expect(stdout).toContain('GIVEN=a b\nc\n')
        expect(stdout).toContain('LANG=de\n')
      } finally {
        delete process.env.BERTH_TEST_SECRET
      }
    })

    test('finds what an earlier one wrote, through the workspace and the other way round', async () => {
      await using bench = new Bench(name)
      const handle = await bench.driver.create('srv_a')
      const workspace = bench.driver.workspace(handle)
      await workspace.write('in.txt', new TextEncoder().encode('hello'))
      const sandbox = await bench.startAgain('srv_a', handle)
      expect((await run(sandbox, 'cat in.txt; echo -n there > out.txt')).stdout).toBe('hello')
      expect(new TextDecoder().decode(await workspace.read('out.txt'))).toBe('there')
      const ofRunning = bench.driver.workspace(handle)
      await ofRunning.write('while.txt', new TextEncoder().encode('it runs'))
      expect((await run(sandbox, 'cat while.txt')).stdout).toBe('it runs')
      expect(await ofRunning.list({ all: true })).toEqual(['in.txt', 'out.txt', 'while.txt'])
    })

    test('has a writable folder for temporary files', async () => {
      const result = await run(server(), 'f=$(mktemp) && echo x > "$f" && rm "$f"')
      expect(result).toMatchObject({ exitCode: 0, stderr: '' })
    })

    test('leaves processes to the server that are gone once they have ended', async () => {
      await using bench = new Bench(name)
      const sandbox = await bench.start('srv_a', { processes: 1000 })
      const orphans = 'for i in $(seq 100); do (true &); done'
      await Promise.all([run(sandbox, orphans), run(sandbox, orphans), run(sandbox, 'true')])
      const untilReaped =
        'while cat /proc/[0-9]*/stat 2>/dev/null | grep -q ") Z $PPID "; do sleep 0.01; done'
      expect(await run(sandbox, untilReaped)).toMatchObject({ exitCode: 0, timedOut: false })
    })

    test('that is asked for while its server is paused begins when that goes on', async () => {
      await using bench = new Bench(name)
      const sandbox = await bench.start()
      const resume = await sandbox.pause()
      const input = new TextEncoder().encode('in')
      const commands = [input, new Blob([input]).stream()].map((stdin) => run(sandbox, 'cat', { stdin }))
      const cancelled = sandbox.exec({ command: 'sleep 600', timeoutMs: 20_000, onOutput() {} })
      cancelled.cancel()
      let printed = ''
      const terminal = sandbox.terminal({
        command: 'read code; stty size; exit $code',
        size: { columns: 80, rows: 24 },
        timeoutMs: 20_000,
        onOutput(data) {
          printed += Buffer.from(data).toString()
        },
      })
      terminal.resize({ columns: 91, rows: 31 })
      terminal.write(new TextEncoder().encode('7\n'))
      expect(await sandbox.processes()).toEqual([])
      resume()
      for (const result of await Promise.all(commands))
        expect(result).toMatchObject({ exitCode: 0, stdout: 'in' })
      expect((await cancelled.exit).exitCode).toBe(143)
      expect((await terminal.exit).exitCode).toBe(7)
      expect(printed).toContain('31 91')
    })

    test('two hundred at once all end with their own result', async () => {
      await using bench = new Bench(name)
      const sandbox = await bench.start('srv_a', { processes: 1000 })
      const numbers = Array.from({ length: 200 }, (_, n) => n)
      const results = await Promise.all(numbers.map((n) => run(sandbox, `echo ${n}; exit ${n % 100}`)))
      expect(results.map(({ stdout }) => Number(stdout))).toEqual(numbers)
      expect(results.map(({ exitCode }) => exitCode)).toEqual(numbers.map((n) => n % 100))
    })
  })
}
