import { SerializeAddon } from '@xterm/addon-serialize'
import type { Terminal } from '@xterm/headless'
import { openEmulator } from '../../runtime/emulator.ts'
import { stateSequences, takesPlainText } from './emulator-state.ts'
import type { EmulatorReply, EmulatorRequest, EmulatorSize } from './emulators.ts'

/** The part of the global scope that a Worker talks through. */
interface WorkerScope {
  onmessage: ((event: { data: EmulatorRequest }) => void) | null
  postMessage(message: EmulatorReply, transfer: ArrayBuffer[]): void
}

/** Does what the main thread asks for, with any number of emulators. */
function runEmulators(scope: WorkerScope): void {
  const emulators = new Map<number, Emulator>()
  scope.onmessage = ({ data: request }) => {
    const { id, kind } = request
    if (kind === 'open') emulators.set(id, new Emulator(request))
    else {
      emulators.get(id)?.handle(request, (reply) => {
        scope.postMessage({ id, ...reply }, reply.screen === null ? [] : [reply.screen.buffer])
      })
    }
    if (kind === 'close') emulators.delete(id)
  }
}

/** A terminal's emulator. It does one thing at a time, in the order of the requests. */
class Emulator {
  readonly #opened: Promise<{ terminal: Terminal; serializer: SerializeAddon }>
  #title = ''
  #last: Promise<unknown>

  constructor(size: EmulatorSize) {
    this.#opened = this.#open(size)
    this.#last = this.#opened
  }

  /** Does what a request asks for, after all earlier ones. @param reply called when it is done */
  handle(request: EmulatorRequest, reply: (done: Omit<EmulatorReply, 'id'>) => void): void {
    this.#last = this.#last.then(async () => reply(await this.#do(request)))
  }

  async #open(size: EmulatorSize) {
    const terminal = await openEmulator(size)
    const serializer = new SerializeAddon()
    terminal.loadAddon(serializer)
    terminal.onTitleChange((title) => {
      this.#title = title
    })
    return { terminal, serializer }
  }

  async #do(request: EmulatorRequest): Promise<Omit<EmulatorReply, 'id'>> {
    const { terminal, serializer } = await this.#opened
    if (request.kind === 'write') {
      await new Promise<void>((resolve) => terminal.write(request.data, resolve))
      return { plain: takesPlainText(terminal), screen: null }
    }
    if (request.kind === 'serialize') {
      const text = `${serializer.serialize()}${stateSequences(terminal, this.#title)}`
      return { plain: false, screen: new TextEncoder().encode(text) }
    }
    if (request.kind === 'resize') {
      terminal.options.scrollback = request.scrollback
      terminal.resize(request.columns, request.rows)
    } else if (request.kind === 'close') terminal.dispose()
    return { plain: false, screen: null }
  }
}

runEmulators(globalThis as unknown as WorkerScope)
