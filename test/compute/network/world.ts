/**
 * A world of three network namespaces without a way out of this machine: the one of this process, which stands for the
 * machine that berth runs on; a server's, with the rules of a server; and a pseudo-internet. Takes a JSON line for each
 * step on standard input and answers each with one.
 *
 * It is started by `openWorld` in a user namespace of its own.
 */
import { dlopen, ptr } from 'bun:ffi'
import { closeSync, mkdirSync, openSync, readdirSync, writeFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { readQuestion } from '../../../src/compute/local/network/outbound/dns-message.ts'
import { OutboundRelay } from '../../../src/compute/local/network/outbound/relay.ts'
import { PROXY_ENVIRONMENT } from '../../../src/compute/local/network/rules.ts'
import type { NetworkFault, OutboundSettings } from '../../../src/compute/sandbox.ts'
import { NAME_SERVER, SILENT, SILENT_HOSTS } from './internet.ts'

/** A step. */
export type Step =
  | {
      readonly do: 'open'
      readonly settings: OutboundSettings
      readonly way: 'redirect' | 'proxy'
      readonly machine?: number
    }
  | { readonly do: 'apply'; readonly settings: OutboundSettings }
  | { readonly do: 'disturb'; readonly fault: NetworkFault | null }
  | { readonly do: 'run'; readonly command: string }
  /** Runs a command on the machine. */
  | { readonly do: 'run outside'; readonly command: string }
  | { readonly do: 'begin'; readonly command: string }
  | { readonly do: 'await' }
  | { readonly do: 'refused' }
  | { readonly do: 'close' }
  | { readonly do: 'end the relay' }
  /** Replaces the machine's resolv.conf(5) or hosts(5). */
  | { readonly do: 'configure'; readonly file: 'resolv.conf' | 'hosts'; readonly text: string }
  /** Opens a name server at 127.0.0.9 that answers nothing. */
  | { readonly do: 'open a mute name server' }
  /** Waits until it was asked for several names, and returns their number. */
  | { readonly do: 'await questions'; readonly names: number }
  /** Counts the descriptors of berth's process, from now until what was begun has ended, and returns the most. */
  | { readonly do: 'count descriptors' }
  /** Reads a file of the machine in berth's process; says whether what was begun still runs then. */
  | { readonly do: 'read a file' }

const RELAY_PORT = 65_535

const RULES = `table inet berth { chain o { type nat hook output priority -100;
  ip daddr 127.0.0.0/8 return; ip6 daddr ::1 return;
  meta l4proto tcp redirect to :${RELAY_PORT}; udp dport 53 redirect to :${RELAY_PORT}; }; }`

function must(...argv: string[]): void {
  const { exitCode, stderr } = Bun.spawnSync(argv, { stdout: 'ignore', stderr: 'pipe' })
  if (exitCode !== 0) throw new Error(`${argv.join(' ')}: ${stderr}`)
}

const inside = (pid: number, ...argv: string[]): string[] => ['nsenter', '-t', String(pid), '-n', ...argv]

/** Starts a process in a network namespace of its own; resolves when it has printed a line. */
async function holder(...argv: string[]) {
  const child = Bun.spawn(['unshare', '-n', '--kill-child', ...argv], {
    stdin: 'pipe',
    stdout: 'pipe',
    stderr: 'inherit',
  })
  return child
}

const firstLine = async (stream: ReadableStream<Uint8Array>): Promise<void> => {
  const reader = stream.getReader()
  await reader.read()
  reader.releaseLock()
}

/** Makes sockets in another network namespace; this process has every capability in it. */
function socketsIn(pid: number, family: 4 | 6, port: number, kind: 'stream' | 'datagram'): number {
  const libc = dlopen('libc.so.6', {
    setns: { args: ['int', 'int'], returns: 'int' },
    socket: { args: ['int', 'int', 'int'], returns: 'int' },
    bind: { args: ['int', 'ptr', 'u32'], returns: 'int' },
    listen: { args: ['int', 'int'], returns: 'int' },
    setsockopt: { args: ['int', 'int', 'int', 'ptr', 'u32'], returns: 'int' },
  }).symbols
  const own = openSync('/proc/self/ns/net', 'r')
  const other = openSync(`/proc/${pid}/ns/net`, 'r')
  try {
    if (libc.setns(other, 0) !== 0) throw new Error('setns failed')
    const type = (kind === 'stream' ? 1 : 2) | 0o2000000 | 0o4000
    const fd = libc.socket(family === 4 ? 2 : 10, type, 0)
    libc.setsockopt(fd, 1, 2, ptr(new Int32Array([1])), 4)
    const address = new Uint8Array(family === 4 ? 16 : 28)
    const view = new DataView(address.buffer)
    view.setUint16(0, family === 4 ? 2 : 10, true)
    view.setUint16(2, port)
    if (family === 4) address.set([127, 0, 0, 1], 4)
    else address[23] = 1
    if (libc.bind(fd, ptr(address), address.length) !== 0) throw new Error(`bind ${port} failed`)
    if (kind === 'stream' && libc.listen(fd, 128) !== 0) throw new Error('listen failed')
    return fd
  } finally {
    libc.setns(own, 0)
    closeSync(own)
    closeSync(other)
  }
}

async function main(): Promise<void> {
  must('mount', '--make-rprivate', '/')
  must('mount', '-t', 'tmpfs', 'none', '/mnt')
  for (const directory of ['/mnt', '/mnt/inside']) {
    mkdirSync(directory, { recursive: true })
    writeFileSync(`${directory}/resolv.conf`, `nameserver ${NAME_SERVER}\noptions timeout:1 attempts:1\n`)
    writeFileSync(`${directory}/hosts`, '127.0.0.1 localhost\n')
  }
  must('mount', '--bind', '/mnt/resolv.conf', '/etc/resolv.conf')
  must('mount', '--bind', '/mnt/hosts', '/etc/hosts')
  must('ip', 'link', 'set', 'lo', 'up')
  const server = await holder('sh', '-c', 'echo up; exec cat >/dev/null')
  await firstLine(server.stdout)
  const internet = await holder(
    'sh',
    '-c',
    `echo up; read go; exec ${process.execPath} ${join(import.meta.dir, 'internet.ts')}`,
  )
  await firstLine(internet.stdout)

  must('ip', 'link', 'add', 'out', 'type', 'veth', 'peer', 'name', 'in', 'netns', String(internet.pid))
  for (const address of ['93.184.216.1/24', '2606:4700::1/64', '10.0.0.1/24', '169.254.0.1/16']) {
    must('ip', 'addr', 'add', address, 'dev', 'out', ...(address.includes(':') ? ['nodad'] : []))
  }
  must('ip', 'link', 'set', 'out', 'up')
  // An interface without carrier, whose address is the machine's all the same.
  must('ip', 'link', 'add', 'idle', 'type', 'veth', 'peer', 'name', 'other')
  must('ip', 'addr', 'add', '93.184.217.1/24', 'dev', 'idle')
  must('ip', 'link', 'set', 'idle', 'up')
  for (const silent of [SILENT, ...SILENT_HOSTS])
    must('ip', '-6', 'neigh', 'add', silent, 'lladdr', '02:00:00:00:00:01', 'dev', 'out', 'nud', 'permanent')
  for (const address of [
    '93.184.216.34/24',
    '93.184.216.35/24',
    `${NAME_SERVER}/24`,
    '10.0.0.5/24',
    '169.254.169.254/16',
    '2606:4700::34/64',
  ]) {
    must(
      ...inside(
        internet.pid,
        'ip',
        'addr',
        'add',
        address,
        'dev',
        'in',
        ...(address.includes(':') ? ['nodad'] : []),
      ),
    )
  }
  must(...inside(internet.pid, 'ip', 'link', 'set', 'in', 'up'))
  internet.stdin.write('go\n')
  internet.stdin.flush()
  await firstLine(internet.stdout)

  // Services of the machine itself: on all of its addresses, and on loopback alone.
  Bun.serve({ hostname: '0.0.0.0', port: 9001, fetch: () => new Response('the machine, everywhere\n') })
  Bun.serve({ hostname: '127.0.0.1', port: 5432, fetch: () => new Response('the machine, on loopback\n') })

  // Expected only while the relay is ended.
  let onError = (message: string): void => console.error(message)
  const relay = new OutboundRelay({
    logger: { error: (message: string) => onError(message), warn() {} } as never,
    worker: new URL('./ending-worker.ts', import.meta.url).href,
  })
  const seen: unknown[] = []
  let outbound: Awaited<ReturnType<OutboundRelay['open']>> | null = null
  let begun: Promise<string> = Promise.resolve('')
  let isRunning = false
  const asked = new Set<string>()
  let onQuestion = (): void => {}
  let env: Readonly<Record<string, string>> = {}

  const run = async (command: string): Promise<string> => {
    const own = 'for f in resolv.conf hosts; do mount --bind /mnt/inside/$f /etc/$f; done'
    const child = Bun.spawn(inside(server.pid, 'unshare', '-m', 'sh', '-c', `${own}; { ${command}; } 2>&1`), {
      env: { PATH: process.env.PATH ?? '', HOME: '/tmp', ...env },
      stdout: 'pipe',
      stderr: 'ignore',
      stdin: 'ignore',
    })
    return (await new Response(child.stdout).text()).trimEnd()
  }

  const act = async (step: Step): Promise<unknown> => {
    if (step.do === 'open') {
      must(...inside(server.pid, 'ip', 'link', 'set', 'lo', 'up'))
      if (step.way === 'redirect') {
        must(...inside(server.pid, 'ip', 'addr', 'add', '100.64.0.2/32', 'dev', 'lo'))
        must(...inside(server.pid, 'ip', '-6', 'addr', 'add', '2001:db8::2/128', 'dev', 'lo', 'nodad'))
        must(...inside(server.pid, 'ip', 'route', 'add', 'default', 'dev', 'lo'))
        must(...inside(server.pid, 'ip', '-6', 'route', 'add', 'default', 'dev', 'lo'))
        must(...inside(server.pid, 'nft', RULES))
      } else {
        env = PROXY_ENVIRONMENT
      }
      const sockets = [
        { fd: socketsIn(server.pid, 4, RELAY_PORT, 'stream'), purpose: 'outbound' as const },
        { fd: socketsIn(server.pid, 6, RELAY_PORT, 'stream'), purpose: 'outbound' as const },
        { fd: socketsIn(server.pid, 4, RELAY_PORT, 'datagram'), purpose: 'dns' as const },
      ]
      const machine =
        step.machine === undefined
          ? []
          : [
              {
                fd: socketsIn(server.pid, 4, step.machine, 'stream'),
                purpose: 'machine' as const,
                port: step.machine,
              },
            ]
      outbound = await relay.open('srv_world', [...sockets, ...machine], step.settings)
      outbound.subscribe((refused) => seen.push(refused))
      return null
    }
    if (step.do === 'run') return run(step.command)
    if (step.do === 'run outside') return Bun.spawnSync(['sh', '-c', step.command]).stdout.toString()
    if (step.do === 'begin') {
      isRunning = true
      begun = run(step.command).finally(() => {
        isRunning = false
      })
      return null
    }
    if (step.do === 'await') return begun
    if (step.do === 'configure') {
      writeFileSync(`/mnt/${step.file}`, step.text)
      return null
    }
    if (step.do === 'open a mute name server') {
      await Bun.udpSocket({
        hostname: '127.0.0.9',
        port: 53,
        socket: {
          data(_, query) {
            asked.add(readQuestion(query)?.name ?? '')
            onQuestion()
          },
        },
      })
      return null
    }
    if (step.do === 'await questions') {
      while (asked.size < step.names) await new Promise<void>((resolve) => (onQuestion = resolve))
      return asked.size
    }
    if (step.do === 'count descriptors') {
      let most = readdirSync('/proc/self/fd').length
      while (isRunning) {
        await Bun.sleep(20)
        most = Math.max(most, readdirSync('/proc/self/fd').length)
      }
      return most
    }
    if (step.do === 'read a file') {
      await readFile('/mnt/hosts')
      return isRunning
    }
    if (outbound === null) throw new Error('Nothing is open.')
    if (step.do === 'end the relay') {
      const said = new Promise<string>((resolve) => {
        onError = resolve
      })
      new BroadcastChannel('end of the relay').postMessage(null)
      return said
    }
    if (step.do === 'apply') return outbound.apply(step.settings)
    if (step.do === 'disturb') return outbound.disturb(step.fault)
    if (step.do === 'refused') return { told: seen, kept: outbound.refused }
    await outbound.close()
    return null
  }

  console.log('ready')
  for await (const line of console) {
    try {
      console.log(JSON.stringify({ value: (await act(JSON.parse(line))) ?? null }))
    } catch (error) {
      console.log(JSON.stringify({ error: String(error) }))
    }
  }
  await relay.close()
  server.kill('SIGKILL')
  internet.kill('SIGKILL')
  await Promise.all([server.exited, internet.exited])
  process.exit(0)
}

if (import.meta.main) await main()
