import { describe, expect, test } from 'bun:test'
import { closeSync, mkdtempSync, openSync, readdirSync, readFileSync, readlinkSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { joinableNetwork } from '../../../src/compute/local/network/namespaces.ts'
import { loadSocketCalls } from '../../../src/compute/local/network/socket-calls.ts'
import { readName } from '../../../src/compute/processes.ts'
import type { Sandbox } from '../../../src/compute/sandbox.ts'
import { ifPresent } from '../../../src/runtime/if-present.ts'
import { LIMITS, run, TEST_PATH, until } from '../bench.ts'
import { NetworkBench, networkIsPossible } from './network-bench.ts'
import { Programs } from './programs.ts'

const NFT = Bun.which('nft', { PATH: `${TEST_PATH}:/usr/sbin:/sbin` })
const BWRAP = Bun.which('bwrap', { PATH: TEST_PATH })

describe.skipIf(!(await networkIsPossible()))('the start of a server with its own network', () => {
  test('is over when the network is: what the first command connects to goes to berth, at servers started at once', async () => {
    await using bench = new NetworkBench()
    const servers = await Promise.all(
      Array.from({ length: 8 }, async (_, index) => {
        const { sandbox } = await bench.start(`srv_${index}`)
        await run(sandbox, 'curl --silent --max-time 10 http://203.0.113.9/')
        return sandbox
      }),
    )
    for (const { outboundControl } of servers) {
      const refused = () => outboundControl?.refused.map(({ destination }) => destination) ?? []
      await until('berth has refused it', () => refused().length > 0)
      expect(refused()).toEqual(['203.0.113.9:80'])
    }
  })

  test('waits for an nft that takes longer than the rest', async () => {
    using programs = new Programs({ nft: `#!/bin/sh\nsleep 1\nexec ${NFT} "$@"\n` })
    await using bench = new NetworkBench({ path: programs.path })
    const { sandbox, network } = await bench.start('srv_a')
    expect(network.unredirected).toBeNull()
    await run(sandbox, 'curl --silent --max-time 10 http://203.0.113.9/')
    await until('berth has refused it', () => (sandbox.outboundControl?.refused.length ?? 0) > 0)
  })

  test('runs nft for the first server only: the others get the same rules', async () => {
    const runs = join(mkdtempSync(join(tmpdir(), 'berth-runs-')), 'runs')
    using programs = new Programs({ nft: `#!/bin/sh\necho run >> ${runs}\nexec ${NFT} "$@"\n` })
    await using bench = new NetworkBench({ path: programs.path, projectPorts: { first: 6830, last: 6839 } })
    const rules: string[] = []
    for (const id of ['srv_a', 'srv_b', 'srv_c']) {
      const { network, sandbox } = await bench.start(id)
      expect(network.unredirected).toBeNull()
      rules.push(await rulesOf(sandbox))
      await run(sandbox, 'curl --silent --max-time 10 http://203.0.113.9/')
      await until('berth has refused it', () => (sandbox.outboundControl?.refused.length ?? 0) > 0)
    }
    expect(rules[0]).toContain('tproxy ip6 to [::1]')
    expect(rules[1]).toBe(rules[0] ?? '')
    expect(rules[2]).toBe(rules[0] ?? '')
    expect(readFileSync(runs, 'utf8')).toBe('run\n')
    rmSync(dirname(runs), { recursive: true })
  })

  test('succeeds while another server has as many descriptors on their way through sockets as it may', async () => {
    await using bench = new NetworkBench()
    const { sandbox } = await bench.start('srv_a')
    const fill = run(sandbox, 'cat > a.js && exec bun a.js', { stdin: Buffer.from(FILL_SOCKETS) })
    await until('no more can be sent', async () =>
      (await run(sandbox, 'cat filled 2>/dev/null')).stdout.includes('ETOOMANYREFS'),
    )
    expect((await run((await bench.start('srv_b')).sandbox, 'echo works')).stdout).toBe('works\n')
    await sandbox.stop()
    await fill
  })

  test('sets the rules later if bwrap does not report what it has made', async () => {
    using programs = new Programs({ bwrap: `#!/bin/sh\nexec ${BWRAP} "$@" 6>/dev/null\n` })
    await using bench = new NetworkBench({ path: programs.path })
    const { sandbox, network } = await bench.start('srv_a')
    expect(network.unredirected).toBeNull()
    await run(sandbox, 'curl --silent --max-time 10 http://203.0.113.9/')
    await until('berth has refused it', () => (sandbox.outboundControl?.refused.length ?? 0) > 0)
  })

  test('leaves no process, network or descriptor if the server ends meanwhile', async () => {
    const dir = mkdtempSync(join(tmpdir(), 'berth-pid-'))
    using programs = new Programs({
      nft: `#!/bin/sh\necho $$ > "$HELD"\nexec sleep 300\n`.replace('$HELD', join(dir, 'pid')),
    })
    await using bench = new NetworkBench({ path: programs.path })
    try {
      const handle = await bench.driver.create('srv_a')
      const before = openFiles()
      const children = childrenOf(process.pid)
      const outcome = bench.driver.start('srv_a', handle, LIMITS).then(
        () => 'started',
        (error: Error) => error.message,
      )
      let pid = 0
      await until('nft runs', () => {
        pid = Number(ifPresent(() => readFileSync(join(dir, 'pid'), 'latin1')))
        return pid > 0
      })
      const network = readlinkSync(`/proc/${pid}/ns/net`)
      expect(network).not.toBe(readlinkSync('/proc/self/ns/net'))
      const [sandbox] = childrenOf(process.pid).filter(
        (child) => !children.includes(child) && readName(child) === 'bwrap',
      )
      process.kill(sandbox ?? Number.NaN, 'SIGKILL')
      expect(await outcome).toContain('did not start')
      expect(ifPresent(() => readlinkSync(`/proc/${pid}/ns/net`))).toBeNull()
      expect(networks()).not.toContain(network)
      await until('every descriptor is closed', () => openFiles() <= before)
    } finally {
      rmSync(dir, { recursive: true })
    }
  })
})

/** The rules of a network, as nft lists them. */
async function rulesOf(sandbox: Sandbox): Promise<string> {
  const name = (await run(sandbox, 'readlink /proc/self/ns/net')).stdout.trim()
  const [path] = networkPaths().filter((path) => ifPresent(() => readlinkSync(path)) === name)
  const found = joinableNetwork(loadSocketCalls(), openSync(path ?? '', 'r'))
  if (found === null) throw new Error('it cannot be joined')
  const user = found.owner === null ? [] : ['--user=/proc/self/fd/4', '--preserve-credentials']
  const child = Bun.spawn(['nsenter', ...user, '--net=/proc/self/fd/3', NFT ?? 'nft', 'list', 'ruleset'], {
    stdio: ['ignore', 'pipe', 'inherit', found.network, found.owner ?? 'ignore'],
  })
  const text = await child.stdout.text()
  for (const fd of [found.network, found.owner]) if (fd !== null) closeSync(fd)
  return text
}

/** How many descriptors this process has open to sockets, namespaces and pipes. */
function openFiles(): number {
  return readdirSync('/proc/self/fd').filter((fd) => {
    const target = ifPresent(() => readlinkSync(`/proc/self/fd/${fd}`)) ?? ''
    return /^(socket|net|user|pipe):/.test(target)
  }).length
}

const childrenOf = (pid: number): number[] =>
  readFileSync(`/proc/${pid}/task/${pid}/children`, 'latin1').trim().split(' ').filter(Boolean).map(Number)

/** The networks of all processes that may be looked at. */
const networks = (): string[] => networkPaths().flatMap((path) => ifPresent(() => readlinkSync(path)) ?? [])

/** The files by which processes that may be looked at show their networks. */
const networkPaths = (): string[] =>
  readdirSync('/proc')
    .filter((pid) => /^\d+$/.test(pid))
    .map((pid) => `/proc/${pid}/ns/net`)
    .filter((path) => {
      try {
        return readlinkSync(path) !== ''
      } catch {
        return false
      }
    })

/** Sends descriptors until the kernel refuses them, says so in a file, and keeps them on their way. */
const FILL_SOCKETS = `
const { dlopen, ptr, read } = require('bun:ffi')
const libc = dlopen('libc.so.6', {
  socketpair: { args: ['int', 'int', 'int', 'ptr'], returns: 'int' },
  sendmsg: { args: ['int', 'ptr', 'int'], returns: 'i64' },
  __errno_location: { args: [], returns: 'ptr' },
}).symbols
// The most that one message carries.
const COUNT = 253
const file = require('fs').openSync('/dev/null')
const byte = new Uint8Array(1)
const vector = new BigUint64Array([BigInt(ptr(byte)), 1n])
const control = new DataView(new ArrayBuffer(16 + 4 * COUNT + 4))
control.setBigUint64(0, BigInt(16 + 4 * COUNT), true)
control.setInt32(8, 1, true)
control.setInt32(12, 1, true)
for (let n = 0; n < COUNT; n++) control.setInt32(16 + 4 * n, file, true)
const message = new BigUint64Array([0n, 0n, BigInt(ptr(vector)), 1n, BigInt(ptr(control)), BigInt(16 + 4 * COUNT), 0n])
const ends = new Int32Array(2)
for (let error = 11; error === 11; ) {
  // AF_UNIX, SOCK_DGRAM; a pair takes a few messages.
  if (libc.socketpair(1, 2, 0, ptr(ends)) !== 0) throw new Error('no socket')
  while (Number(libc.sendmsg(ends[0], ptr(message), 0x40)) === 1);
  error = read.i32(libc.__errno_location(), 0)
  if (error === 109) require('fs').writeFileSync('filled', 'ETOOMANYREFS')
}
await Bun.sleep(300_000)
`
