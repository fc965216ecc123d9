import { describe, expect, test } from 'bun:test'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { canHideAbstractSockets } from '../../../src/system/linux/confinement.ts'
import { run, TEST_PATH, until } from '../bench.ts'
import { NetworkBench, networkIsPossible } from './network-bench.ts'
import { Programs } from './programs.ts'

/** A bwrap that refuses to make networks, as gVisor's does. */
const BWRAP = `#!/bin/sh
copy=$(mktemp)
cat <&4 > "$copy"
if tr '\\0' '\\n' < "$copy" | grep -qx -e --unshare-net; then
  rm "$copy"; echo 'bwrap: loopback: Failed RTM_NEWADDR: Operation not permitted' >&2; exit 1
fi
exec 4< "$copy"; rm "$copy"
exec ${Bun.which('bwrap', { PATH: TEST_PATH }) ?? 'bwrap'} "$@"
`

describe.skipIf(!(await networkIsPossible()))('where the system does not permit all', () => {
  test('without nft, programs find a proxy, and what holds is said', async () => {
    using programs = new Programs({ nft: '#!/bin/sh\necho "no such table" >&2; exit 1\n' })
    await using bench = new NetworkBench({ path: programs.path })
    const { sandbox, network } = await bench.start('srv_a')
    expect(network.unredirected).toBe('nft failed: no such table.')
    const { stdout } = await run(sandbox, 'curl --silent --max-time 5 http://203.0.113.9/; echo $https_proxy')
    expect(stdout).toEndWith('http://127.0.0.1:65535\n')
    const refused = () => sandbox.outboundControl?.refused.map(({ destination }) => destination) ?? []
    await until('it is refused', () => refused().length > 0)
    expect(refused()).toEqual(['203.0.113.9:80'])
    const probe = await bench.driver.probe()
    expect(probe.available && (await probe.enforced()).network).toBe('own, outbound by proxy')
  })

  test('without tproxy, a server reaches no port of a project, and all else holds', async () => {
    const tried = join(mkdtempSync(join(tmpdir(), 'berth-programs-')), 'tried')
    const nft = `#!/bin/sh
rules=$(cat); echo "$rules" | grep -q tproxy && { echo no >> ${tried}; echo 'no tproxy' >&2; exit 1; }
echo "$rules" | ${Bun.which('nft', { PATH: `${TEST_PATH}:/usr/sbin:/sbin` })} "$@"
`
    using programs = new Programs({ nft })
    await using bench = new NetworkBench({ path: programs.path, projectPorts: { first: 6820, last: 6829 } })
    const accepted: number[] = []
    for (const id of ['srv_a', 'srv_b']) {
      const { sandbox, network } = await bench.start(id)
      network.acceptAtProjectPorts((port) => {
        accepted.push(port)
        return null
      })
      expect(network.unredirected).toBeNull()
      const { exitCode } = await run(sandbox, 'curl --silent --max-time 5 http://127.0.0.1:6821/')
      // Refused, as any other port on which nothing listens.
      expect(exitCode).toBe(7)
    }
    expect(accepted).toEqual([])
    // The second server does without from the start.
    expect(readFileSync(tried, 'utf8')).toBe('no\n')
    rmSync(dirname(tried), { recursive: true })
  })

  test('without network namespaces, servers share the machine’s network, and that is said', async () => {
    using programs = new Programs({ bwrap: BWRAP })
    await using bench = new NetworkBench({ path: programs.path })
    const probe = await bench.driver.probe()
    expect(probe.available && (await probe.enforced()).network).toBe('shared with this machine')
    const sandbox = await bench.driver.start('srv_a', await bench.driver.create('srv_a'), {
      ...{ cpus: 1, memoryBytes: 2 ** 28, processes: 100, storageBytes: 2 ** 24 },
    })
    try {
      expect(sandbox.network).toBe('shared')
      using machine = Bun.serve({ hostname: '127.0.0.1', port: 0, fetch: () => new Response('machine') })
      expect((await run(sandbox, `curl --silent ${machine.url}`)).stdout).toBe('machine')
    } finally {
      await sandbox.stop()
    }
  })

  test.skipIf(!canHideAbstractSockets())(
    'without network namespaces, commands reach abstract Unix sockets of their own, and none of the machine’s',
    async () => {
      using programs = new Programs({ bwrap: BWRAP })
      await using bench = new NetworkBench({ path: programs.path })
      await bench.driver.probe()
      const sandbox = await bench.driver.start('srv_a', await bench.driver.create('srv_a'), {
        ...{ cpus: 1, memoryBytes: 2 ** 28, processes: 100, storageBytes: 2 ** 24 },
      })
      const name = `berth-test-${crypto.randomUUID()}`
      using _machine = Bun.listen({
        unix: `\0${name}`,
        socket: { open() {}, data() {} },
      })
      const script = `
        use Socket;
        sub reach { socket(my $s, AF_UNIX, SOCK_STREAM, 0); connect($s, pack_sockaddr_un("\\0$_[0]")) ? "reached" : "$!" }
        socket(my $own, AF_UNIX, SOCK_STREAM, 0); bind($own, pack_sockaddr_un("\\0${name}-own")); listen($own, 1);
        print reach("${name}"), ", own ", reach("${name}-own")`
      try {
        const moved = 'mkdir a b && echo x > a/f && mv a/f b/f'
        const { stdout } = await run(sandbox, `${moved} && perl -e '${script}'`)
        expect(stdout).toBe('Operation not permitted, own reached')
      } finally {
        await sandbox.stop()
      }
    },
  )
})
