import { ComputeError, type ProcessSignal } from '../../compute/sandbox.ts'
import { BerthError } from '../../errors.ts'
import type { Caller } from '../../http/caller.ts'
import { type Clock, toIso } from '../../runtime/clock.ts'
import type { ServersService } from '../servers/service.ts'
import type { ServerProcess, SignalResult } from './model.ts'

/** Shows and ends what runs on servers. Looking does not count as a use of a server: it neither wakes it nor keeps it awake. */
export class ProcessesService {
  readonly #servers: ServersService
  readonly #clock: Clock

  constructor({ servers, clock }: { servers: ServersService; clock: Clock }) {
    this.#servers = servers
    this.#clock = clock
  }

  /**
   * Returns the processes of a server by ascending number; none of one that sleeps.
   *
   * @throws BerthError 404, 502
   */
  async list(caller: Caller, serverId: string): Promise<ServerProcess[]> {
    const { id } = this.#servers.getRow(caller, serverId)
    const sandbox = this.#servers.lifecycle.sandbox(id)
    if (sandbox === undefined || sandbox.ending) return []
    try {
      // Before the look, so that a slow response makes no process younger than it is.
      const now = this.#clock.now()
      const found = await sandbox.processes()
      return found
        .map(({ pid, parentPid, command, state, cpuPercent, memoryBytes, ageMs, ports, owner }) => ({
          pid,
          parent_pid: parentPid,
          command,
          state,
          cpu_percent: cpuPercent,
          memory_bytes: memoryBytes,
          started_at: toIso(now - ageMs),
          ports: [...ports],
          belongs_to: owner,
        }))
        .sort((a, b) => a.pid - b.pid)
    } catch (error) {
      if (sandbox.ending) return []
      throw backendError('The processes could not be listed', error)
    }
  }

  /**
   * Sends a signal to a process of a server, and waits up to a second for its end.
   *
   * @throws BerthError 404, 502
   */
  async signal(caller: Caller, serverId: string, pid: string, signal: ProcessSignal): Promise<SignalResult> {
    const { id } = this.#servers.getRow(caller, serverId)
    const sandbox = this.#servers.lifecycle.sandbox(id)
    const number = /^[1-9]\d{0,9}$/.test(pid) ? Number(pid) : null
    if (sandbox === undefined || sandbox.ending || number === null) throw noProcess(pid)
    this.#servers.lifecycle.touch(id)
    try {
      const outcome = await sandbox.signal(number, signal)
      if (outcome === 'missing') throw noProcess(pid)
      return { pid: number, signal, ended: outcome === 'ended' }
    } catch (error) {
      if (error instanceof ComputeError && sandbox.ending) throw noProcess(pid)
      throw backendError('The process could not be sent a signal', error)
    }
  }
}

const noProcess = (pid: string): BerthError =>
  new BerthError('not_found', `The server has no process ${JSON.stringify(pid)} that commands have started.`)

const backendError = (what: string, error: unknown): unknown =>
  error instanceof ComputeError ? new BerthError('compute_backend_error', `${what}: ${error.message}`) : error
