import type { Emulators, InputModes, WatchRequest } from '../../compute/emulators/emulators.ts'
import type { Sandbox, TerminalExecution, TerminalSize } from '../../compute/sandbox.ts'
import type { SocketEnd } from '../../http/web-socket.ts'
import { type Clock, toIso } from '../../runtime/clock.ts'
import { PrintedEnds, type Recorder } from '../../runtime/recorder.ts'
import { within } from '../../runtime/wait.ts'
import type { Terminal, TerminalScreen } from './model.ts'
import { KeptScreen, type ScreenWatch } from './screen.ts'
import { SOCKET_ENDS, type ViewedTerminal, Viewer } from './viewer.ts'

/** Most bytes that are kept of what was typed and no program has read. @bound client */
const MAX_TYPED = 16 * 1024 * 1024

/** Typed bytes that no program has read, from which the emulator's responses are dropped. @bound program */
const MAX_ANSWERED = 64 * 1024

/** What does not change about a terminal. */
interface TerminalFacts {
  readonly id: string
  readonly serverId: string
  readonly accountId: string
  readonly name: string
  /** Null for a login shell. */
  readonly command: string | null
  readonly cwd: string
  readonly startedAt: number
}

/** What runs on a terminal. */
export interface TerminalStart {
  readonly command: string
  /** Relative to the workspace. */
  readonly cwd: string
  readonly env: Record<string, string>
  readonly size: TerminalSize
}

/** Dependencies of a terminal. */
interface TerminalDependencies {
  clock: Clock
  emulators: Emulators
  recorder: Recorder | null
  /** Called when it is used: when it prints or is typed on, or a viewer comes or leaves. */
  onUse: () => void
  /** Called when a viewer has come or left, with whether there is one. */
  onWatched: (watched: boolean) => void
  /** Called when what a list shows of it has changed. */
  onChanged: () => void
  /** Called when its program has ended. */
  onEnded: () => void
}

/** Learns what ends a wait for a terminal. */
export interface TerminalObserver {
  /** Called when its program has ended and everything that it has printed is drawn. */
  exited(): void
  /** Called when it is not there any more. */
  gone(): void
}

/** A program on a terminal, with its screen and its viewers. */
export class LiveTerminal implements ViewedTerminal {
  readonly facts: TerminalFacts
  readonly #dependencies: TerminalDependencies
  readonly #sandbox: Sandbox
  readonly #screen: KeptScreen
  readonly #execution: TerminalExecution
  readonly #viewers = new Set<Viewer>()
  readonly #observers = new Set<TerminalObserver>()
  /** When it last printed, or began, as `performance.now` counts. */
  #printedAt = performance.now()
  /** Whether its program has ended, and its last screen is drawn. */
  #hasEnded = false
  #size: TerminalSize
  #lastUsedAt: number
  #exitCode: number | null = null
  /** What the report of a run has of it; null if there is none, or it has it. */
  #printed: PrintedEnds | null
  readonly #holdUp: HoldUp

  /**
   * Starts the program.
   *
   * @throws ComputeError if the sandbox is gone or refuses
   */
  constructor(
    facts: TerminalFacts,
    sandbox: Sandbox,
    start: TerminalStart,
    dependencies: TerminalDependencies,
  ) {
    this.facts = facts
    this.#dependencies = dependencies
    this.#printed = dependencies.recorder && new PrintedEnds()
    this.#sandbox = sandbox
    this.#size = start.size
    this.#lastUsedAt = facts.startedAt
    this.#screen = new KeptScreen(start.size, dependencies.emulators, {
      drained: () => this.#holdUp.release(),
      answered: (answer) => this.#answer(answer),
    })
    this.#holdUp = new HoldUp(this.#screen, this.#viewers, () => this.#goUnwatched(false))
    this.#execution = sandbox.terminal({
      ...start,
      owner: { kind: 'terminal', id: facts.id },
      timeoutMs: null,
      onOutput: (data) => this.#print(data),
    })
    this.#execution.exit.then(
      ({ exitCode }) => this.#finish(exitCode),
      () => this.#finish(1),
    )
  }

  /** Resolves when the program runs; rejects with `ComputeError` if it cannot be started. */
  get started(): Promise<unknown> {
    return this.#execution.pid
  }

  /** Whether its program runs. */
  get isLive(): boolean {
    return this.#exitCode === null
  }

  /** Whether a viewer is attached, or somebody waits for what it shows. */
  get isWatched(): boolean {
    return this.#viewers.size + this.#observers.size > 0
  }

  /** When it was last used, milliseconds since 1970. */
  get lastUsedAt(): number {
    return this.#lastUsedAt
  }

  toJson(): Terminal {
    const { id, name, command, cwd, startedAt } = this.facts
    return {
      id,
      name,
      command,
      cwd,
      ...this.#size,
      viewers: this.#viewers.size,
      started_at: toIso(startedAt),
      last_used_at: toIso(this.#lastUsedAt),
      exit_code: this.#exitCode,
    }
  }

  /** Returns a viewer for a new socket. @param onClosed called when it is closed */
  view(size: TerminalSize | null, onClosed: () => void): Viewer {
    return new Viewer(this, size, onClosed)
  }

  /** Closes the sockets of all viewers. */
  closeViewers(end: SocketEnd): void {
    for (const viewer of [...this.#viewers]) viewer.close(end)
  }

  /** Hangs up; resolves when the program and everything that it has started has ended. */
  async hangUp(): Promise<void> {
    this.#execution.hangUp()
    // A held-up program could not end: its output would still have to be taken.
    this.#holdUp.giveUp()
    await this.#execution.exit.catch(() => {})
  }

  /** Drops the screen. */
  dispose(): void {
    this.#recordOutput()
    this.#screen.dispose()
    for (const observer of this.#observers) observer.gone()
  }

  /** Whether its program has ended, and its last screen is drawn. */
  get hasEnded(): boolean {
    return this.#hasEnded
  }

  /** When it last printed, or began, as `performance.now` counts. */
  get printedAt(): number {
    return this.#printedAt
  }

  /** The number of viewers. */
  get viewers(): number {
    return this.#viewers.size
  }

  /** The number of observers. */
  get observers(): number {
    return this.#observers.size
  }

  /** Adds an observer, which counts as a viewer without a size. @returns what removes it */
  observe(observer: TerminalObserver): () => void {
    this.#observers.add(observer)
    this.#dependencies.onWatched(true)
    this.#holdUp.expectNobody()
    return () => {
      this.#observers.delete(observer)
      this.#dependencies.onWatched(this.isWatched)
    }
  }

  /** Looks for a pattern on its screen; see `KeptScreen.watch`. */
  watch(request: WatchRequest, onMatch: (match: string) => void): Promise<ScreenWatch> {
    return this.#screen.watch(request, onMatch)
  }

  /** The modes of its screen, at the end of what is drawn. */
  get modes(): InputModes {
    return this.#screen.modes
  }

  /**
   * Returns its screen as text, with the last `lines` rows of scrollback; null if it is gone. If it takes long to draw
   * what was printed before, the screen is as far as it is drawn then.
   *
   * @param deadline when to wait no longer, as `performance.now` counts
   */
  async read(lines: number, deadline: number): Promise<Omit<TerminalScreen, 'outcome' | 'match'> | null> {
    const patienceMs = Math.max(0, deadline - performance.now())
    const screen =
      (await within(patienceMs, this.#screen.read(lines), null)) ?? (await this.#screen.peek(lines))
    if (screen === null) return null
    return {
      text: screen.rows.join('\n').replace(/\n+$/, ''),
      scrollback: screen.scrollback.join('\n'),
      cursor: screen.cursor,
      title: screen.title,
      alternate_screen: screen.isAlternate,
      ...this.#size,
      exit_code: this.#exitCode,
    }
  }

  /** Types, unless the program has not read too much of what was typed before. @returns whether it has */
  typeAll(data: Uint8Array): boolean {
    this.#use()
    if (this.#execution.unread + data.length > MAX_TYPED) return false
    this.#execution.write(data)
    return true
  }

  join(viewer: Viewer): void {
    this.#viewers.add(viewer)
    this.#use()
    this.#dependencies.onWatched(true)
    this.#dependencies.onChanged()
    void this.#show(viewer, true)
    this.resized()
    this.#holdUp.expectNobody()
  }

  leave(viewer: Viewer): void {
    if (!this.#viewers.delete(viewer)) return
    this.#use()
    this.#dependencies.onWatched(this.isWatched)
    this.#dependencies.onChanged()
    this.resized()
    this.#holdUp.release()
    this.#goUnwatched(true)
  }

  /** Takes the size of the smallest viewer, columns and rows each. Without any, the size stays. */
  resized(): void {
    const sizes = [...this.#viewers].flatMap(({ size }) => size ?? [])
    if (sizes.length === 0 || !this.isLive) return
    const columns = Math.min(...sizes.map((size) => size.columns))
    const rows = Math.min(...sizes.map((size) => size.rows))
    if (columns === this.#size.columns && rows === this.#size.rows) return
    this.#size = { columns, rows }
    this.#screen.resize(this.#size)
    this.#execution.resize(this.#size)
    this.#dependencies.onChanged()
  }

  type(viewer: Viewer, data: Uint8Array): void {
    if (!this.typeAll(data)) viewer.close(SOCKET_ENDS.typedTooMuch)
  }

  drained(viewer: Viewer): void {
    this.#refresh(viewer)
    this.#holdUp.release()
  }

  #use(): void {
    this.#lastUsedAt = this.#dependencies.clock.now()
    this.#dependencies.onUse()
  }

  /** Sends a viewer the screen, and how the program has ended if it has. */
  async #show(viewer: Viewer, isFirst: boolean): Promise<void> {
    const since = viewer.awaitScreen()
    viewer.show(await this.#screen.snapshot(), since, isFirst)
    if (this.#exitCode !== null && viewer.isCurrent) viewer.exit(this.#exitCode)
    // It may have missed what was printed meanwhile, and have read the screen already.
    this.#refresh(viewer)
  }

  /** Sends the screen anew to a viewer that has missed output, if it reads again. */
  #refresh(viewer: Viewer): void {
    if (viewer.needsScreen) void this.#show(viewer, false)
  }

  #print(data: Uint8Array): Promise<void> | undefined {
    this.#use()
    this.#printedAt = performance.now()
    this.#screen.write(data)
    this.#printed?.write(data)
    for (const viewer of this.#viewers) {
      viewer.send(data)
      this.#refresh(viewer)
    }
    return this.#holdUp.begin()
  }

  /** Whether the program has to wait, for the screen or for viewers. */
  get isHeldUp(): boolean {
    return this.#holdUp.isNeeded
  }

  /**
   * Draws soon what is printed while nobody watches, so that a program that asks its terminal has a response.
   *
   * @param wasViewed whether a viewer has had what was printed before
   */
  #goUnwatched(wasViewed: boolean): void {
    if (this.#viewers.size === 0) this.#screen.drawSoon(wasViewed)
  }

  /** Passes on a response of the terminal to its program. A viewer's own terminal responds too. */
  #answer(answer: string): void {
    // A program may ask without end, and never read.
    if (this.#viewers.size === 0 && this.#execution.unread < MAX_ANSWERED)
      this.#execution.write(new TextEncoder().encode(answer))
  }

  /** Has what it has printed in the report of a run, once. */
  #recordOutput(): void {
    if (this.#printed !== null) this.#dependencies.recorder?.output(this.facts.id, this.#printed)
    this.#printed = null
  }

  #finish(exitCode: number): void {
    this.#holdUp.expectNobody()
    this.#exitCode = exitCode
    this.#recordOutput()
    this.#use()
    this.#dependencies.onChanged()
    void this.#screen.finish().then(() => {
      this.#hasEnded = true
      for (const observer of this.#observers) observer.exited()
    })
    // A viewer that waits for its screen is notified after it.
    // The program has not ended by itself, if its server has.
    if (this.#sandbox.ending) this.closeViewers(SOCKET_ENDS.serverStopped)
    for (const viewer of [...this.#viewers]) {
      if (viewer.isCurrent) viewer.exit(exitCode)
      else this.#refresh(viewer)
    }
    this.#dependencies.onEnded()
  }
}

/** Milliseconds for which a program is held up while no viewer reads. */
const PATIENCE_MS = 10_000

/**
 * Milliseconds for which a program that prints much waits for its first viewer. Who opens a terminal attaches at once,
 * and would otherwise miss what exceeds the scrollback.
 */
const FIRST_VIEWER_MS = 1_000

/**
 * Holds up the program of a terminal, by not taking its output, as long as one of these is true:
 *
 * - its first viewer is expected, and would miss some of what it prints
 * - the screen has too much to draw
 * - nobody of those who watch reads, for at most 10 s
 */
class HoldUp {
  readonly #screen: Pick<KeptScreen, 'isFull' | 'isLongUnseen'>
  readonly #viewers: ReadonlySet<Viewer>
  /** Lets the program go on; null while it is not held up. */
  #resume: (() => void) | null = null
  #impatience: Timer | undefined
  /** Runs while the first viewer is expected. */
  #expected: Timer | null

  /** @param onNobody called if the first viewer does not come in time */
  constructor(
    screen: Pick<KeptScreen, 'isFull' | 'isLongUnseen'>,
    viewers: ReadonlySet<Viewer>,
    onNobody: () => void,
  ) {
    this.#screen = screen
    this.#viewers = viewers
    this.#expected = setTimeout(() => {
      this.expectNobody()
      onNobody()
    }, FIRST_VIEWER_MS)
  }

  /** Whether the program has to wait. */
  get isNeeded(): boolean {
    const isEarly = this.#expected !== null && this.#screen.isLongUnseen
    return isEarly || this.#screen.isFull || this.#viewersAreFull
  }

  /** Returns what the program has to wait for after it has printed; undefined if nothing holds it up. */
  begin(): Promise<void> | undefined {
    if (!this.isNeeded) return
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#resume = resolve
    if (this.#viewersAreFull) this.#impatience = setTimeout(() => this.giveUp(), PATIENCE_MS)
    return promise
  }

  /** Lets the program go on if nothing holds it up any more. Call it when a viewer or the screen has taken something. */
  release(): void {
    if (this.#resume === null || this.isNeeded) return
    clearTimeout(this.#impatience)
    const resume = this.#resume
    this.#resume = null
    resume()
  }

  /** Waits no longer for the first viewer: it has come, or none is needed. */
  expectNobody(): void {
    if (this.#expected === null) return
    clearTimeout(this.#expected)
    this.#expected = null
    this.release()
  }

  /** Waits no longer for any viewer. Those that do not read are sent the screen when they do. */
  giveUp(): void {
    this.expectNobody()
    for (const viewer of this.#viewers) if (viewer.isFull) viewer.fallBehind()
    this.release()
  }

  get #viewersAreFull(): boolean {
    // Those who have fallen behind are sent the screen when they read again, so nobody waits for them.
    const reading = [...this.#viewers].filter((viewer) => !viewer.isBehind)
    return reading.length > 0 && reading.every((viewer) => viewer.isFull)
  }
}
