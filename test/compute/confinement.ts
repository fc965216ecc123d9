import { describe, expect, test } from 'bun:test'
import type { Sandbox } from '../../src/compute/sandbox.ts'
import type { Isolation } from '../../src/config/config.ts'
import { Bench, type Result, run } from './bench.ts'

/** The errors of the kernel that the tests name. */
export const EPERM = 1
export const ENOSYS = 38
const EAFNOSUPPORT = 97

/** Functions for scripts inside a sandbox: `call(number, …)` makes a system call and returns its result, or −errno. */
const PRELUDE = `
  import { dlopen, ptr, read } from 'bun:ffi'
  const { symbols: libc } = dlopen('libc.so.6', {
    syscall: { args: ['i64', 'i64', 'i64', 'i64', 'i64'], returns: 'i64' },
    __errno_location: { args: [], returns: 'ptr' },
  })
  const call = (number, a = 0, b = 0, c = 0, d = 0) => {
    const result = Number(libc.syscall(...[number, a, b, c, d].map(BigInt)))
    return result === -1 ? -read.i32(libc.__errno_location()) : result
  }
  const arm = process.arch === 'arm64'
`

/**
 * Returns the command that runs a script, by the Bun that every sandbox has.
 *
 * @param prefix the program that starts it, with arguments
 */
export function inScript(home: string, script: string, prefix = ''): string {
  const file = `${home}/.script.mjs`
  return `cat > ${file} << 'END'\n${PRELUDE}${script}\nEND\nPATH="\${PATH##*:}:$PATH"; exec ${prefix} $(command -v bun) ${file}`
}

/** Runs a script in a sandbox. */
export const runScript = (sandbox: Sandbox, script: string): Promise<Result> =>
  run(sandbox, inScript(sandbox.home, script))

/** What no command may ask of the kernel. */
export function systemCallTests(name: Isolation): void {
  describe('system calls', () => {
    test('reach no keyring of the kernel, no vsock, no io_uring and no request of the machine’s, and reserve no file', async () => {
      await using bench = new Bench(name)
      const { stdout, stderr } = await runScript(
        await bench.start(),
        `
        import { openSync } from 'node:fs'
        const [add, request, keyctl, socket, fcntl] = arm ? [217, 218, 219, 198, 25] : [248, 249, 250, 41, 72]
        const file = openSync(process.argv[1], 'r+')
        const text = (value) => ptr(Buffer.from(value + '\\0'))
        const user = -4
        console.log(JSON.stringify({
          add: call(add, text('user'), text('berth:test'), text('x'), 1),
          request: call(request, text('user'), text('berth:test'), 0, user),
          describe: call(keyctl, 6, user),
          ring: call(425, 8, ptr(new Uint8Array(120))),
          requests: call(arm ? 0 : 206, 1, ptr(new BigUint64Array(1))),
          vsock: call(socket, 40, 1),
          lease: call(fcntl, file, 1024, 1),
          delegation: call(fcntl, file, 1040, 0),
          tcp: call(socket, 2, 1) > 0,
          unix: Math.min(call(socket, 1, 1), 1),
        }))`,
      )
      expect({ stderr, ...JSON.parse(stdout || '{}') }).toEqual({
        stderr: '',
        add: -ENOSYS,
        request: -ENOSYS,
        describe: -ENOSYS,
        ring: -ENOSYS,
        requests: -ENOSYS,
        vsock: -EAFNOSUPPORT,
        lease: -EPERM,
        delegation: -EPERM,
        tcp: true,
        unix: name === 'landlock' ? -EAFNOSUPPORT : 1,
      })
    })

    test('change no limit and no priority of sandboxd, which enforces limits, but those of other programs', async () => {
      await using bench = new Bench(name)
      const { stdout, stderr } = await runScript(
        await bench.start(),
        `
        import { readdirSync } from 'node:fs'
        const [limit, priority, io, ...schedule] = arm
          ? [261, 140, 30, 118, 119, 122, 274] : [302, 141, 251, 142, 144, 203, 314]
        const limits = ptr(new BigUint64Array([64n, 64n])), zeros = ptr(new Uint8Array(64))
        const attempts = (id) => [
          call(limit, id, 7, limits), call(priority, 0, id, 19), call(io, 1, id, 3 << 13),
          ...schedule.map((number) => number === schedule[2] ? call(number, id, 8, ptr(new Uint8Array([1, 0, 0, 0, 0, 0, 0, 0])))
            : number === schedule[1] ? call(number, id, 0, zeros) : call(number, id, zeros, 0)),
        ]
        const threads = readdirSync('/proc/' + process.ppid + '/task').map(Number)
        console.log(JSON.stringify({
          threads: threads.length > 1,
          results: [...new Set(threads.flatMap(attempts))],
          group: call(priority, 1, process.ppid, 19),
          user: [call(priority, 2, 0, 19), call(io, 3, 0, 3 << 13)],
          read: call(limit, process.ppid, 7, 0, zeros),
          own: attempts(process.pid).slice(0, 3),
        }))`,
      )
      expect({ stderr, ...JSON.parse(stdout || '{}') }).toEqual({
        stderr: '',
        threads: true,
        results: [-EPERM],
        group: -EPERM,
        user: [-EPERM, -EPERM],
        read: 0,
        own: [0, 0, 0],
      })
    })

    test.skipIf(process.arch !== 'x64')(
      'of another interface of the processor are no way around',
      async () => {
        await using bench = new Bench(name)
        const sandbox = await bench.start()
        const x32 = await runScript(sandbox, 'console.log(call(0x40000000 + 250, 6, -4))')
        expect(x32).toMatchObject({ stdout: `${-ENOSYS}\n`, stderr: '' })
        // mov eax, 288 (keyctl of 32-bit programs); int 0x80; ret
        const old = await runScript(
          sandbox,
          `
        import { CFunction } from 'bun:ffi'
        const { symbols } = dlopen('libc.so.6', {
          mmap: { args: ['ptr', 'u64', 'int', 'int', 'int', 'i64'], returns: 'ptr' },
          memcpy: { args: ['ptr', 'ptr', 'u64'], returns: 'ptr' },
        })
        const code = new Uint8Array([0xb8, 0x20, 1, 0, 0, 0xcd, 0x80, 0xc3])
        const place = symbols.mmap(null, 4096, 7, 0x22, -1, 0)
        symbols.memcpy(place, ptr(code), code.length)
        console.log('made', new CFunction({ ptr: place, returns: 'int', args: [] })())`,
        )
        expect(old.stdout).not.toContain('made')
        expect(old.exitCode).not.toBe(0)
      },
    )
  })
}
