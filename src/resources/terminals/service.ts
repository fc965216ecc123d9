import type { Emulators } from '../../compute/emulators/emulators.ts'
import { ComputeError, type Sandbox } from '../../compute/sandbox.ts'
import { BerthError, badRequest, notFound } from '../../errors.ts'
import type { Caller } from '../../http/caller.ts'
import type { WaitEnds } from '../../http/wait-ends.ts'
import { checkVersion, credentialEnd, type SocketUpgrader, wantsSocket } from '../../http/web-socket.ts'
import type { Clock, Timer } from '../../runtime/clock.ts'
import type { Ids } from '../../runtime/ids.ts'
import type { Logger } from '../../runtime/logger.ts'
import { PendingCounts } from '../../runtime/pending-counts.ts'
import type { Recorder } from '../../runtime/recorder.ts'
import type { Changes } from '../changes/types.ts'
import { type ExecService, pathInWorkspace } from '../exec/service.ts'
import type { SecretsService } from '../secrets/service.ts'
import type { ServerLifecycleListener } from '../servers/lifecycle-listener.ts'
import type { ServersService } from '../servers/service.ts'
import type { ServerRow } from '../servers/table.ts'
import { readTerminal, typeOnTerminal } from './interaction.ts'
import { LOGIN_SHELL, loginShellEnvironment } from './login-shell.ts'
import {
  type AttachQuery,
  DEFAULT_SIZE,
  type ScreenQuery,
  type Terminal,
  type TerminalCreate,
  type TerminalInput,
} from './model.ts'
import { LiveTerminal, type TerminalStart } from './terminal.ts'
import { SOCKET_ENDS } from './viewer.ts'

/** Most terminals of a server whose programs run. @bound client */
const MAX_LIVE = 20

/** Most terminals of a server whose programs have ended; the oldest is dropped for another. @bound client */
const MAX_ENDED = 20

/** Milliseconds for which a terminal is listed whose program has ended. */
const ENDED_MS = 3_600_000

/** Milliseconds between records of the use of a server by what its terminals print. */
const TOUCH_MS = 1_000

/** Characters of a server's id that tell it from others: the prefix and the time. */
const BRIEF_ID = 'srv_'.length + 10

/** Dependencies of the terminals. */
interface TerminalsDependencies {
  emulators: Emulators
  servers: ServersService
  secrets: SecretsService
  exec: ExecService
  clock: Clock
  ids: Ids
  logger: Logger
  sockets: SocketUpgrader
  /** Milliseconds without viewer and output after which a terminal ends; null for never. */
  terminalIdleMs: number | null
  changes: Changes
  recorder: Recorder | null
}

/** Most viewers of a terminal: each may have megabytes on their way. @bound client */
const MAX_VIEWERS = 50

/** What a viewer that attaches brings along. */
interface Attachment extends Pick<WaitEnds, 'whileValid'> {
  request: Request
  query: AttachQuery
  /** Headers of the response to the handshake. */
  headers: Record<string, string>
}

/** The terminals of all servers. They are kept in memory, and end with berth. */
export class TerminalsService implements ServerLifecycleListener {
  readonly #dependencies: TerminalsDependencies
  /** By id, in the order in which they began. */
  readonly #terminals = new Map<string, LiveTerminal>()
  /** Numbers of terminals that are about to begin, by server. */
  readonly #beginning = new PendingCounts()
  /** What ends a terminal later, by its id. */
  readonly #timers = new Map<string, Timer>()

  constructor(dependencies: TerminalsDependencies) {
    this.#dependencies = dependencies
  }

  /**
   * Returns the terminals of a server, newest first.
   *
   * @throws BerthError 404
   */
  list(caller: Caller, serverId: string): Terminal[] {
    this.#dependencies.servers.getRow(caller, serverId)
    return this.#ofServer(serverId)
      .map((terminal) => terminal.toJson())
      .reverse()
  }

  /**
   * Returns a terminal.
   *
   * @throws BerthError 404
   */
  get(caller: Caller, serverId: string, id: string): Terminal {
    return this.#find(caller, serverId, id).toJson()
  }

  /**
   * Starts a program on a new terminal. Resolves when it runs.
   *
   * @throws BerthError 400, 402, 404, 502; 403 if the server has as many as it may
   */
  async create(caller: Caller, serverId: string, request: TerminalCreate): Promise<Terminal> {
    const { servers, exec } = this.#dependencies
    await exec.check(caller, serverId, request)
    const count = this.#live(serverId).length + this.#beginning.of(serverId)
    if (count >= MAX_LIVE) {
      throw new BerthError(
        'plan_limit',
        `The server has ${MAX_LIVE} terminals, which is the most. End one: DELETE /servers/${serverId}/terminals/{terminalId}.`,
      )
    }
    // Refuses a name that is taken without waking the server.
    nameFor(request, this.#namesOf(serverId))
    const begun = this.#beginning.add(serverId)
    try {
      const { row, sandbox, done } = await servers.use(caller, serverId)
      try {
        const terminal = this.#begin(row, sandbox, request)
        begun()
        await terminal.started.catch((error) => {
          this.#drop(terminal)
          throw error
        })
        return terminal.toJson()
      } finally {
        done()
      }
    } catch (error) {
      if (!(error instanceof ComputeError)) throw error
      throw new BerthError('compute_backend_error', `The terminal could not be opened: ${error.message}`)
    } finally {
      begun()
    }
  }

  /**
   * Makes a request the socket of a viewer.
   *
   * @throws BerthError 404; 403 if the terminal has the most viewers; 426 if it is not a handshake
   */
  attach(caller: Caller, serverId: string, id: string, attachment: Attachment): void {
    const { request, query, headers, whileValid } = attachment
    const terminal = this.#find(caller, serverId, id)
    if (!wantsSocket(request)) {
      throw new BerthError(
        'upgrade_required',
        'A terminal is attached to by WebSocket: send a handshake, or use a WebSocket client.',
      )
    }
    checkVersion(request)
    if (terminal.viewers >= MAX_VIEWERS) {
      throw new BerthError(
        'plan_limit',
        `The terminal has ${MAX_VIEWERS} viewers, which is the most. Detach one, or read it by GET /servers/${serverId}/terminals/${id}/screen.`,
      )
    }
    const { columns, rows } = query
    const size = columns === undefined || rows === undefined ? null : { columns, rows }
    const unsubscribe = whileValid(() => viewer.close(credentialEnd(caller)))
    const viewer = terminal.view(size, unsubscribe)
    if (this.#dependencies.sockets.upgrade(request, viewer, headers)) return
    unsubscribe()
    throw badRequest('The handshake of the WebSocket lacks a header, such as Sec-WebSocket-Key.')
  }

  /**
   * Returns the screen of a terminal, when what the query asks for has come.
   *
   * @throws BerthError 400, 401, 403, 404
   */
  screen(caller: Caller, serverId: string, id: string, query: ScreenQuery, ends: WaitEnds) {
    return readTerminal(this.#find(caller, serverId, id), query, ends)
  }

  /**
   * Types on a terminal, and returns its screen when what the request asks for has come.
   *
   * @throws BerthError 400, 401, 403, 404
   */
  type(caller: Caller, serverId: string, id: string, request: TerminalInput, ends: WaitEnds) {
    return typeOnTerminal(this.#find(caller, serverId, id), request, ends)
  }

  /**
   * Hangs a terminal up and removes it. Resolves when its program has ended.
   *
   * @throws BerthError 404
   */
  async delete(caller: Caller, serverId: string, id: string): Promise<void> {
    const terminal = this.#find(caller, serverId, id)
    terminal.closeViewers(SOCKET_ENDS.deleted)
    await terminal.hangUp()
    this.#drop(terminal)
  }

  serverStopping(serverId: string): void {
    for (const terminal of this.#ofServer(serverId)) terminal.closeViewers(SOCKET_ENDS.serverStopped)
  }

  serverDeleting({ id }: ServerRow): void {
    for (const terminal of this.#ofServer(id)) terminal.closeViewers(SOCKET_ENDS.serverDeleted)
  }

  async serverDeleted(serverId: string): Promise<void> {
    for (const terminal of this.#ofServer(serverId)) this.#drop(terminal)
  }

  /** Closes all viewers. The programs end with their servers. */
  stop(): void {
    for (const terminal of [...this.#terminals.values()]) {
      terminal.closeViewers(SOCKET_ENDS.stopping)
      this.#drop(terminal)
    }
  }

  #begin(row: ServerRow, sandbox: Sandbox, request: TerminalCreate): LiveTerminal {
    const { clock, ids, recorder, secrets, servers } = this.#dependencies
    const facts = {
      id: ids.next('term', (id) => this.#terminals.has(id)),
      serverId: row.id,
      accountId: row.accountId,
      name: nameFor(request, this.#namesOf(row.id)),
      command: request.command ?? null,
      cwd: pathInWorkspace(request.cwd ?? ''),
      startedAt: clock.now(),
    }
    const start = startOf(row, sandbox, facts.cwd, request, secrets.environment(row.id))
    let release: (() => void) | null = null
    let touchedAt = 0
    const terminal = new LiveTerminal(facts, sandbox, start, {
      clock,
      recorder,
      emulators: this.#dependencies.emulators,
      onUse: () => {
        const now = clock.elapsed()
        if (now - touchedAt < TOUCH_MS) return
        touchedAt = now
        servers.lifecycle.touch(row.id)
      },
      onWatched: (watched) => {
        if (watched) release ??= servers.lifecycle.hold(row.id)
        else {
          release?.()
          release = null
        }
      },
      onChanged: () => this.#notify(terminal),
      onEnded: () => this.#handleEnd(terminal),
    })
    this.#terminals.set(facts.id, terminal)
    this.#notify(terminal)
    this.#watchIdle(terminal)
    return terminal
  }

  /** Ends a terminal when it has been neither watched nor used for long enough. */
  #watchIdle(terminal: LiveTerminal): void {
    const { clock, terminalIdleMs } = this.#dependencies
    if (terminalIdleMs === null) return
    const { id } = terminal.facts
    const watch = (ms: number): void => {
      const check = (): void | Promise<void> => {
        const left = terminal.isWatched ? terminalIdleMs : terminal.lastUsedAt + terminalIdleMs - clock.now()
        if (left <= 0) return terminal.hangUp()
        watch(left)
      }
      this.#timers.set(id, clock.after(ms, check, { name: 'terminal.hang_up', id }))
    }
    watch(terminalIdleMs)
  }

  #handleEnd(terminal: LiveTerminal): void {
    const { servers, clock } = this.#dependencies
    const { id, serverId } = terminal.facts
    const row = servers.records.find(serverId)
    if (row) servers.meter.changed(row)
    if (!this.#terminals.has(id)) return
    this.#timers.get(id)?.cancel()
    this.#timers.set(
      id,
      clock.after(ENDED_MS, () => this.#drop(terminal), { name: 'terminal.forget', id }),
    )
    const ended = this.#ofServer(serverId).filter((one) => !one.isLive && one.facts.id !== id)
    for (const old of ended.slice(0, Math.max(0, ended.length + 1 - MAX_ENDED))) this.#drop(old)
  }

  #drop(terminal: LiveTerminal): void {
    const { id } = terminal.facts
    if (!this.#terminals.delete(id)) return
    this.#timers.get(id)?.cancel()
    this.#timers.delete(id)
    terminal.dispose()
    this.#notify(terminal)
  }

  #notify({ facts: { id, serverId, accountId } }: LiveTerminal): void {
    this.#dependencies.changes.notify('terminal', id, accountId, serverId)
  }

  #find(caller: Caller, serverId: string, id: string): LiveTerminal {
    this.#dependencies.servers.getRow(caller, serverId)
    const terminal = this.#terminals.get(id)
    if (terminal?.facts.serverId !== serverId) throw notFound(`The terminal "${id}"`)
    return terminal
  }

  #ofServer(serverId: string): LiveTerminal[] {
    return [...this.#terminals.values()].filter(({ facts }) => facts.serverId === serverId)
  }

  #live(serverId: string): LiveTerminal[] {
    return this.#ofServer(serverId).filter(({ isLive }) => isLive)
  }

  /** Returns the names of a server's terminals whose programs run. */
  #namesOf(serverId: string): ReadonlySet<string> {
    return new Set(this.#live(serverId).map(({ facts }) => facts.name))
  }
}

/** Returns what to start on a new terminal. Variables of the request win over the server's secrets. */
function startOf(
  { id, task }: ServerRow,
  { tools }: Sandbox,
  cwd: string,
  { command, env, columns, rows }: TerminalCreate,
  secrets: Record<string, string>,
): TerminalStart {
  const size = { columns: columns ?? DEFAULT_SIZE.columns, rows: rows ?? DEFAULT_SIZE.rows }
  const given: Record<string, string> = { COLORTERM: 'truecolor', ...secrets, ...env }
  if (command !== undefined) return { command, cwd, env: given, size }
  const shell = loginShellEnvironment({
    name: task || id.slice(0, BRIEF_ID),
    tools,
    shell: given.SHELL ?? '',
  })
  return { command: LOGIN_SHELL, cwd, env: { ...shell, ...given }, size }
}

/**
 * Returns the name of a new terminal: the one that is asked for, or that of its program, with a number if need be.
 *
 * @param taken the names of the server's other terminals
 * @throws BerthError 400 if another has it
 */
function nameFor({ name, command }: TerminalCreate, taken: ReadonlySet<string>): string {
  if (name !== undefined) {
    if (!taken.has(name)) return name
    throw badRequest(`"name" in the body: the server has a terminal "${name}" already; choose another name.`)
  }
  const program = command === undefined ? 'shell' : programOf(command)
  for (let number = 1; ; number += 1) {
    const free = number === 1 ? program : `${program}-${number}`
    if (!taken.has(free)) return free
  }
}

/** Returns the name of a command's program, as a terminal's name may be: `FOO=1 exec /bin/top -d 1` → `top`. */
function programOf(command: string): string {
  const words = command.trim().split(/\s+/)
  const program = words.find((word) => word !== 'exec' && !/^[A-Za-z_]\w*=/.test(word)) ?? ''
  const [name] = /[A-Za-z0-9][A-Za-z0-9._-]{0,40}/.exec(program.split('/').at(-1) ?? '') ?? []
  return name ?? 'command'
}
