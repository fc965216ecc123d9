import { HostedEmulator } from './hosted-emulator.ts'
import type { EmulatorMessage, EmulatorRequest } from './protocol.ts'

/** The part of the global scope that a Worker talks through. */
interface WorkerScope {
  onmessage: ((event: { data: EmulatorRequest }) => void) | null
  postMessage(message: EmulatorMessage, transfer: ArrayBufferLike[]): void
}

/** Does what the main thread asks for, with any number of emulators. */
function runEmulators(scope: WorkerScope): void {
  const emulators = new Map<number, HostedEmulator>()
  scope.onmessage = ({ data: request }) => {
    const { id, kind } = request
    if (kind === 'open') emulators.set(id, open(scope, request))
    else {
      emulators.get(id)?.handle(request, (result) => {
        scope.postMessage({ id, kind, result }, result instanceof Uint8Array ? [result.buffer] : [])
      })
    }
    if (kind === 'close') emulators.delete(id)
  }
  // The emulator throws errors of its listeners in timers of their own. Its next error, if there is one, is caught.
  process.on('uncaughtException', (error) => scope.postMessage({ id: null, fault: messageOf(error) }, []))
}

function open(
  scope: WorkerScope,
  { id, size, followsRows }: Extract<EmulatorRequest, { kind: 'open' }>,
): HostedEmulator {
  return new HostedEmulator(size, followsRows, {
    answered: (answer) => scope.postMessage({ id, answer }, []),
    failed: (error) => scope.postMessage({ id, fault: messageOf(error) }, []),
  })
}

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))

// A Worker's global scope; TypeScript knows that of a page.
runEmulators(globalThis as unknown as WorkerScope)
