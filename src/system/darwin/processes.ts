import { readdirSync, statSync } from 'node:fs'
import { machineNow } from '../../runtime/clock.ts'
import { once } from '../../runtime/once.ts'
import type { Descriptor, Processes, ProcessInfo, TcpSocket, TcpSockets } from '../system.ts'
import {
  argumentsIn,
  descriptorsIn,
  fileIn,
  handleIn,
  identityIn,
  loadLibproc,
  processIn,
  SSTOP,
  taskIn,
  tcpSocketIn,
} from './libproc.ts'
import { type Descent, LAUNCHD, Lineage } from './lineage.ts'

const NS_PER_MS = 1_000_000
const US_PER_MS = 1_000n

/** PROX_FDTYPE_SOCKET and PROX_FDTYPE_PIPE of bsd/sys/proc_info.h. */
const SOCKET = 2
const PIPE = 6

/** Bytes of a process's arguments and variables that are looked at, as on Linux. @bound program */
const MAX_ARGUMENTS = 16 * 1024
const MAX_VARIABLES = 256 * 1024

/** Returns the processes that libproc shows: of other users, no more than that they are there. */
export function darwinProcesses(): Processes {
  const libproc = once(loadLibproc)
  const nanoseconds = once(() => libproc().nanosecondsPerTick())
  const lineage = new Lineage()
  const bootMs = once(() => {
    const time = libproc().bootTime()
    const view = time && new DataView(time.buffer)
    return view === null ? 0 : Number(view.getBigInt64(0, true)) * 1_000 + view.getInt32(8, true) / 1_000
  })
  const infoOf = (pid: number) => {
    const report = libproc().report(pid, 'process')
    return report && processIn(report)
  }
  const taskOf = (pid: number) => {
    const report = libproc().report(pid, 'task')
    return report && taskIn(report)
  }
  const argumentsOf = (pid: number) => {
    const bytes = libproc().arguments(pid)
    return bytes && argumentsIn(bytes)
  }
  const look = (pid: number): (ProcessInfo & Descent) | null => {
    const info = infoOf(pid)
    if (info === null) return null
    const { parent, group, startedUs } = info
    const report = libproc().report(pid, 'identity')
    const identity = report === null ? null : identityIn(report)
    return { pid, parent, group, session: libproc().session(pid), startTicks: String(startedUs), identity }
  }
  const list = (): ProcessInfo[] =>
    lineage.adopt(
      libproc()
        .pids()
        .flatMap((pid) => look(pid) ?? []),
    )
  const read = (pid: number): ProcessInfo | null => {
    const found = look(pid)
    if (found === null) return null
    const [info = found] = lineage.adopt([found])
    // An orphan's ancestor is found among all that live.
    return info.parent === LAUNCHD ? (list().find((one) => one.pid === pid) ?? info) : info
  }
  function* descriptorsAt(pid: number, list: Uint8Array): Generator<Descriptor> {
    for (const { fd, type } of descriptorsIn(list)) {
      const report = libproc().descriptor(pid, fd, type)
      if (report === null) continue
      if (type === SOCKET || type === PIPE) {
        const kind = type === SOCKET ? 'socket' : 'pipe'
        yield { fd, target: `${kind}:[${handleIn(report)}]`, file: () => null }
      } else {
        const file = fileIn(report)
        yield { fd, target: file.path, file: () => file }
      }
    }
  }

  return {
    pids: () => libproc().pids(),
    list,
    read,
    note: (pid) => void read(pid),
    children: () => null,
    isStopped: (pid) => infoOf(pid)?.status === SSTOP,
    name: (pid) => infoOf(pid)?.name ?? null,
    commandLine: (pid) => argumentsOf(pid)?.commandLine.slice(0, MAX_ARGUMENTS) ?? null,
    environment: (pid) => argumentsOf(pid)?.environment.slice(0, MAX_VARIABLES) ?? null,
    usage(pid) {
      const info = infoOf(pid)
      const task = taskOf(pid)
      if (info === null || task === null) return null
      const state = info.status === SSTOP ? 'stopped' : task.runningThreads > 0 ? 'running' : 'sleeping'
      return {
        parentPid: read(pid)?.parent ?? info.parent,
        state,
        cpuMs: (task.ticks * nanoseconds()) / NS_PER_MS,
        childCpuMs: 0,
        startedMs: Math.max(0, Number(info.startedUs / US_PER_MS) - bootMs()),
        threads: task.threads,
      }
    },
    memory(pid) {
      const bytes = taskOf(pid)?.residentBytes
      return bytes === undefined ? null : { residentBytes: bytes, ownBytes: bytes }
    },
    owner: (pid) => infoOf(pid)?.uid ?? null,
    runs(pid, { dev, ino }) {
      const file = statSync(libproc().path(pid) || '/nonexistent', { throwIfNoEntry: false })
      return file?.dev === dev && file.ino === ino
    },
    descriptors(pid) {
      const list = libproc().descriptors(pid)
      return list === null ? (infoOf(pid) === null ? [] : null) : descriptorsAt(pid, list)
    },
    uptimeMs: () => Math.round(machineNow() - bootMs()),
    // There are none.
    namespace: () => '0',
    isInForeground() {
      const info = infoOf(process.pid)
      return info && info.group === info.foregroundGroup
    },
    ignoredSignals: () => (signal) => libproc().ignores(signal),
    maxOpenFiles: () => libproc().maxOpenFiles(),
    openFiles: () => readdirSync('/dev/fd').length,
    countThreadsOf: (uid) => libproc().pids(uid).length,
    availableMemory: () => null,
  }
}

/** Returns the TCP sockets of this user's processes, which libproc shows. */
export function darwinSockets(): TcpSockets {
  const libproc = once(loadLibproc)
  const socketsOf = (pid: number): TcpSocket[] => {
    const list = libproc().descriptors(pid)
    if (list === null) return []
    return descriptorsIn(list).flatMap(({ fd, type }) => {
      const report = type === SOCKET ? libproc().descriptor(pid, fd, type) : null
      const socket = report && tcpSocketIn(report)
      return socket ? [{ ...socket, uid, inode: String(handleIn(report)) }] : []
    })
  }
  const uid = process.getuid?.() ?? 0
  const all = (): TcpSocket[] => libproc().pids(uid).flatMap(socketsOf)
  return {
    listening: () => all().filter(({ listens }) => listens),
    withLocalPorts: async (ports) => all().filter(({ port }) => ports.includes(port)),
  }
}
