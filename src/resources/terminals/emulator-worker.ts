import { SerializeAddon } from '@xterm/addon-serialize'
import type { Terminal } from '@xterm/headless'
import { openEmulator } from '../../runtime/emulator.ts'
import { stateSequences, takesPlainText } from './emulator-state.ts'
import { readScreen } from './emulator-text.ts'
import type { PatternWatch } from './emulator-watch.ts'
import type {
  EmulatorAnswer,
  EmulatorReply,
  EmulatorRequest,
  EmulatorResults,
  EmulatorSize,
  PatternMatch,
  WatchResult,
} from './emulators.ts'

/** The part of the global scope that a Worker talks through. */
interface WorkerScope {
  onmessage: ((event: { data: EmulatorRequest }) => void) | null
  postMessage(message: EmulatorReply | EmulatorAnswer, transfer: ArrayBufferLike[]): void
}

/** Does what the main thread asks for, with any number of emulators. */
function runEmulators(scope: WorkerScope): void {
  const emulators = new Map<number, Emulator>()
  scope.onmessage = ({ data: request }) => {
    const { id, kind } = request
    if (kind === 'open')
      emulators.set(id, new Emulator(request, (answer) => scope.postMessage({ id, answer }, [])))
    else {
      emulators.get(id)?.handle(request, (result) => {
        scope.postMessage({ id, result }, result instanceof Uint8Array ? [result.buffer] : [])
      })
    }
    if (kind === 'close') emulators.delete(id)
  }
}

/** A terminal's emulator. It does one thing at a time, in the order of the requests. */
class Emulator {
  readonly #opened: Promise<{ terminal: Terminal; serializer: SerializeAddon }>
  readonly #answer: (answer: string) => void
  /** By number. */
  readonly #watches = new Map<number, PatternWatch>()
  #title = ''
  #last: Promise<unknown>

  constructor(size: EmulatorSize, answer: (answer: string) => void) {
    this.#answer = answer
    this.#opened = this.#open(size)
    this.#last = this.#opened
  }

  /** Does what a request asks for, after all earlier ones. @param reply called with the result */
  handle(request: EmulatorRequest, reply: (result: EmulatorReply['result']) => void): void {
    this.#last = this.#last.then(async () => reply(await this.#do(request)))
  }

  async #open(size: EmulatorSize) {
    const terminal = await openEmulator(size)
    const serializer = new SerializeAddon()
    terminal.loadAddon(serializer)
    terminal.onTitleChange((title) => {
      this.#title = title
    })
    terminal.onData(this.#answer)
    return { terminal, serializer }
  }

  async #do(request: EmulatorRequest): Promise<EmulatorReply['result']> {
    const { terminal, serializer } = await this.#opened
    switch (request.kind) {
      case 'write':
        await new Promise<void>((resolve) => terminal.write(request.data, resolve))
        return {
          plain: takesPlainText(terminal),
          matches: this.#matches(),
        } satisfies EmulatorResults['write']
      case 'serialize':
        return new TextEncoder().encode(`${serializer.serialize()}${stateSequences(terminal, this.#title)}`)
      case 'read':
        return readScreen(terminal, this.#title, request.lines)
      case 'watch':
        return this.#watch(terminal, request)
      case 'unwatch':
        this.#watches.get(request.watch)?.dispose()
        this.#watches.delete(request.watch)
        return null
      case 'resize':
        terminal.options.scrollback = request.scrollback
        terminal.resize(request.columns, request.rows)
        for (const watch of this.#watches.values()) watch.resized()
        return null
      case 'close':
        terminal.dispose()
        return null
      case 'open':
        return null
    }
  }

  /** Looks for a pattern on a terminal from now on. Without one it only returns the modes that input depends on. */
  async #watch(
    terminal: Terminal,
    { watch: number, pattern, onlyNew }: Extract<EmulatorRequest, { kind: 'watch' }>,
  ): Promise<WatchResult> {
    const { applicationCursorKeysMode: cursorKeys, bracketedPasteMode: paste } = terminal.modes
    const modes = { cursorKeys, paste }
    if (pattern === null) return { modes, match: null, refusal: null }
    // The engine of expressions is loaded with the first one.
    const { PatternWatch } = await import('./emulator-watch.ts')
    const watch = PatternWatch.begin(terminal, pattern, onlyNew)
    if (typeof watch === 'string') return { modes, match: null, refusal: watch }
    this.#watches.set(number, watch)
    return { modes, match: watch.find(), refusal: null }
  }

  #matches(): PatternMatch[] {
    return [...this.#watches].flatMap(([watch, pattern]) => {
      const text = pattern.find()
      return text === null ? [] : [{ watch, text }]
    })
  }
}

// A Worker's global scope; TypeScript knows that of a page.
runEmulators(globalThis as unknown as WorkerScope)
