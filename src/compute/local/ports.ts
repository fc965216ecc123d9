import { Pace } from '../../runtime/pace.ts'
import { findSocketsOf, readListeningSockets, socketsOf } from '../../system/sockets.ts'
import type { TcpSocket } from '../../system/system.ts'
import { readCpuMs } from '../process-table.ts'
import { findDescendants, readArguments, readEnvironment, readMarker } from '../processes.ts'
import { type CommandActivity, type ListeningAddress, type LoopbackAddress, NO_ACTIVITY } from '../sandbox.ts'

/**
 * The local addresses that receive connections to each loopback address, written as in /proc/net/tcp, with words in
 * the machine's byte order. The kernel takes the first of these that a socket is bound to.
 */
const ANSWERING: Readonly<Record<LoopbackAddress['host'], readonly string[]>> = {
  '127.0.0.1': [
    '0100007F',
    '0000000000000000FFFF00000100007F',
    '00000000',
    '0000000000000000FFFF000000000000',
    // Of any address in IPv6 most sockets take IPv4 as well.
    '0'.repeat(32),
  ],
  '::1': [`${'0'.repeat(24)}01000000`, '0'.repeat(32)],
}

/**
 * Returns what a command's processes do: the processes below `root` that carry the command's marker, and all their
 * descendants. Looks sockets up in one network namespace, so a process in another one cannot claim them. Leaves an
 * address out if another program receives its connections.
 *
 * @param root the host's pid of the sandbox's first process
 * @param networkOf the host's pid of a process in that network
 */
export async function readActivity(
  root: number,
  marker: string,
  networkOf: number,
): Promise<CommandActivity> {
  // Programs may have thousands of processes, descriptors and sockets, which must not hold up everything else.
  const pace = new Pace()
  const family = await commandFamily(root, marker, pace)
  if (family.size === 0) return NO_ACTIVITY
  const cpuMs = [...family].reduce((sum, pid) => sum + readCpuMs(pid), 0)
  return { listening: await listeningAddresses(family, networkOf, pace), cpuMs }
}

async function listeningAddresses(
  family: ReadonlySet<number>,
  networkOf: number,
  pace: Pace,
): Promise<ListeningAddress[] | null> {
  const all = readListeningSockets(networkOf)
  if (all === null) return null
  const owned = new Set<string>()
  let unseen = false
  for (const pid of all.length === 0 ? [] : family) {
    const sockets = await findSocketsOf(pid, pace)
    if (sockets === null) unseen = true
    for (const inode of sockets ?? []) owned.add(inode)
  }
  const ports = new Set(all.filter(({ inode }) => owned.has(inode)).map(({ port }) => port))
  const byPort = Map.groupBy(all, ({ port }) => port)
  const debugPorts = ports.size === 0 ? new Set() : new Set([...family].flatMap(readDebugPorts))
  const found = [...ports]
    .sort((a, b) => a - b)
    .flatMap((port) =>
      HOSTS.filter((host) => answers(host, byPort.get(port) ?? [], owned)).map(
        (host): ListeningAddress => ({ host, port, ...(debugPorts.has(port) && { isDebugger: true }) }),
      ),
    )
  return found.length === 0 && unseen ? null : found
}

const HOSTS = ['127.0.0.1', '::1'] as const

/** Reports whether connections to this address and the port of these sockets go to one of the owned ones. */
function answers(
  host: LoopbackAddress['host'],
  there: readonly TcpSocket[],
  owned: ReadonlySet<string>,
): boolean {
  for (const address of ANSWERING[host]) {
    const bound = there.filter((one) => one.address === address)
    if (bound.length > 0) return bound.every(({ inode }) => owned.has(inode))
  }
  return false
}

/** Returns the TCP ports that a process listens on, ascending; none if they cannot be seen. */
export function portsOf(pid: number): number[] {
  const owned = new Set(socketsOf(pid) ?? [])
  const all = readListeningSockets(pid) ?? []
  const ports = all.filter(({ inode }) => owned.has(inode)).map(({ port }) => port)
  return [...new Set(ports)].sort((a, b) => a - b)
}

async function commandFamily(root: number, marker: string, pace: Pace): Promise<Set<number>> {
  const family = new Set<number>()
  for (const pid of findDescendants(root)) {
    if (pace.due) await pace.rest()
    if (family.has(pid) || readMarker(pid) !== marker) continue
    family.add(pid)
    for (const descendant of findDescendants(pid)) family.add(descendant)
  }
  return family
}

/** The ports of Node.js' and Deno's inspector and of Bun's, if their option names none. */
const INSPECTOR_PORTS = [9229, 6499]

/** Matches the options of Node.js, Deno and Bun that open an inspector, with its address. */
const INSPECT = /^--(?:inspect(?:-brk|-wait|-port)?|debug-port)(?:=(.*))?$/

/** Matches a JVM's debugging agent, with its port. */
const JDWP = /jdwp[=:]\S*?\baddress=(?:[^,\s]*:)?(\d+)/g

/** Matches the beginning of the command lines of debuggers of Go, Ruby and Python, and their options with an address. */
const DEBUGGER =
  /^(?:\S+ )?(?:\S*\/)?(?:dlv|rdbg)(?: |$)| -m (?:debugpy|ptvsd)(?: |$)|\/debugpy\/(?:adapter|launcher)|\/pydevd\.py /
const LISTEN = /^--(?:listen|port)(?:=(.*))?$/

/** Variables with options of Node.js, Bun and JVMs. */
const OPTION_VARIABLES = [
  'NODE_OPTIONS',
  'BUN_OPTIONS',
  'JAVA_TOOL_OPTIONS',
  'JDK_JAVA_OPTIONS',
  '_JAVA_OPTIONS',
]

/**
 * Returns the ports on which a process listens for a debugger, as its command line and its variables say: the
 * inspectors of Node.js, Deno and Bun, debuggers of Python, Go and Ruby, and a JVM's agent. It need not listen there.
 */
function readDebugPorts(pid: number): number[] {
  const variables = OPTION_VARIABLES.flatMap((name) => readEnvironment(pid, name) ?? [])
  const inspector = readEnvironment(pid, 'BUN_INSPECT')
  return [
    ...debugPortsOf(readArguments(pid)),
    ...variables.flatMap((value) => debugPortsOf(value.split(/\s+/))),
    ...(inspector === null ? [] : inspectorPorts(inspector)),
  ]
}

/** Returns the ports that arguments of a program open for a debugger. */
export function debugPortsOf(args: readonly string[]): number[] {
  // Options of the program that is debugged follow the debugger's own.
  const listenAt = DEBUGGER.test(args.slice(0, 8).join(' ')) ? args.findIndex((arg) => LISTEN.test(arg)) : -1
  return args.flatMap((arg, index) => {
    const inspect = INSPECT.exec(arg)
    if (inspect !== null) return inspectorPorts(inspect[1])
    if (index === listenAt) return portIn(LISTEN.exec(arg)?.[1] ?? args[index + 1])
    return [...arg.matchAll(JDWP)].map(([, port]) => Number(port))
  })
}

/** Returns the port of an inspector's address, or the default ones if it names none. */
function inspectorPorts(address: string | undefined): number[] {
  const named = portIn(address)
  return named.length === 0 ? INSPECTOR_PORTS : named
}

/** Returns the port of `5678`, `:5678`, `localhost:5678`, `[::1]:5678` or `ws://localhost:5678/path`. */
function portIn(address: string | undefined): number[] {
  const port = /^(?:\w+:\/\/)?(?:.*:)?(\d{1,5})(?:[/?].*)?$/.exec(address ?? '')?.[1]
  return port === undefined ? [] : [Number(port)]
}
