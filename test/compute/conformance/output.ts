import { describe, expect, test } from 'bun:test'
import { Bench, run, type Subject, until } from '../bench.ts'
import { sharedServer } from './shared-server.ts'

/** How output arrives. */
export function outputTests(name: Subject): void {
  describe('output', () => {
    const server = sharedServer(name)

    test('is complete and in order, megabytes of it', async () => {
      const { stdout } = await run(server(), 'seq 1 400000')
      const lines = stdout.trimEnd().split('\n')
      expect(lines.length).toBe(400_000)
      expect(lines.every((line, index) => line === String(index + 1))).toBe(true)
    })

    test('does not wait for a background child that keeps the pipes open', async () => {
      const sandbox = server()
      const began = performance.now()
      const result = await run(sandbox, 'sleep 30 & echo hi')
      expect(result).toMatchObject({ exitCode: 0, stdout: 'hi\n' })
      expect(performance.now() - began).toBeLessThan(15_000)
    })

    test('does not wait for a background child that prints without end', async () => {
      await using bench = new Bench(name)
      const sandbox = await bench.start()
      const result = await run(sandbox, 'yes & echo hi')
      expect(result.exitCode).toBe(0)
      expect(result.stdout).toContain('hi\n')
    })

    test('of a background child after its command is over does not end the child', async () => {
      await using bench = new Bench(name)
      const sandbox = await bench.start()
      await run(sandbox, '(while :; do echo output; echo tick >> ticks; sleep 0.02; done) &')
      const ticks = async () => Number((await run(sandbox, 'wc -l < ticks')).stdout)
      await until('some ticks', async () => (await ticks()) > 20)
    })

    test('beyond the limit of a stream is dropped and reported; the command goes on', async () => {
      const command = 'head -c 300000 /dev/zero; head -c 500 /dev/zero >&2; exit 3'
      const result = await run(server(), command, { outputLimit: 1000 })
      expect(result).toMatchObject({ exitCode: 3, truncated: true })
      expect([result.stdout.length, result.stderr.length]).toEqual([1000, 500])
    })

    test('beyond the limit holds the command up for less than it takes to drop it in pieces of 64 KiB', async () => {
      await using bench = new Bench(name)
      const sandbox = await bench.start()
      const began = performance.now()
      const result = await run(sandbox, 'head -c 400000000 /dev/zero', { outputLimit: 1000 })
      expect(result).toMatchObject({ exitCode: 0, truncated: true })
      // With a pause of 2 ms for each piece.
      expect(performance.now() - began).toBeLessThan((400_000_000 / 2 ** 16) * 2)
    })

    test('of exactly the limit is not truncated', async () => {
      const result = await run(server(), 'head -c 1000 /dev/zero', { outputLimit: 1000 })
      expect(result).toMatchObject({ exitCode: 0, truncated: false })
      expect(result.stdout.length).toBe(1000)
    })

    test('that nobody takes holds the command back, not others, and none is lost', async () => {
      await using bench = new Bench(name)
      const sandbox = await bench.start()
      const gate = Promise.withResolvers<void>()
      let received = 0
      const { exit } = sandbox.exec({
        command: 'head -c 20000000 /dev/zero; echo -n done > done',
        timeoutMs: 20_000,
        onOutput(_, data) {
          received += data.length
          return gate.promise
        },
      })
      await until('the first output', () => received > 0)
      for (let n = 0; n < 20; n += 1) expect((await run(sandbox, 'echo other')).stdout).toBe('other\n')
      expect((await run(sandbox, 'cat done 2>/dev/null')).stdout).toBe('')
      expect(received).toBeLessThanOrEqual(256 * 1024)
      gate.resolve()
      expect(await exit).toMatchObject({ exitCode: 0, truncated: false })
      expect(received).toBe(20_000_000)
    })

    test('is delivered before the exit, however slowly it is taken', async () => {
      const sandbox = server()
      let text = ''
      const { exit } = sandbox.exec({
        command: 'echo one; echo two',
        timeoutMs: 20_000,
        async onOutput(_, data) {
          await new Promise((resolve) => setImmediate(resolve))
          text += new TextDecoder().decode(data)
        },
      })
      await exit
      expect(text).toBe('one\ntwo\n')
    })

    test('whose receiver fails ends the command with that failure', async () => {
      await using bench = new Bench(name)
      const sandbox = await bench.start()
      const { exit } = sandbox.exec({
        command: 'echo hi; sleep 300',
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
