import {
  decodeJson,
  encodeJson,
  encodeNumber,
  encodeSandboxdFrame,
  FRAME,
  FrameReader,
} from '../../src/compute/sandboxd/protocol.ts'

/** What a sandboxd that was taken over may do when it is to run the command of a number. */
const DEEDS: Readonly<Record<string, (send: (bytes: Uint8Array) => void, id: number) => void>> = {
  'sends noise': (send) => send(new Uint8Array(100_000).map((_, n) => (n * 7919) % 251)),
  'announces a frame of 4 GiB': (send) => send(new Uint8Array(9).fill(255)),
  'prints for a command that was never asked for': (send, id) =>
    send(encodeSandboxdFrame(FRAME.stdout, id + 100, new Uint8Array(1))),
  'answers a call that was never made': (send, id) => send(encodeJson(FRAME.result, id, {})),
  'exits with 4096': (send, id) => send(encodeJson(FRAME.exit, id, { exitCode: 4096 })),
  'exits with a prototype': (send, id) =>
    send(encodeSandboxdFrame(FRAME.exit, id, Buffer.from('{"__proto__": {"exitCode": 0}}'))),
  'exits with deep JSON': (send, id) =>
    send(encodeSandboxdFrame(FRAME.exit, id, Buffer.from('['.repeat(200_000)))),
  'exits twice': (send, id) => {
    for (let n = 0; n < 2; n++) send(encodeJson(FRAME.exit, id, { exitCode: 0 }))
  },
  'prints more than was asked for': (send, id) => {
    for (let n = 0; n < 300; n++) send(encodeSandboxdFrame(FRAME.stdout, id, new Uint8Array(64 * 1024)))
  },
  'takes input that it was not sent': (send, id) =>
    send(encodeSandboxdFrame(FRAME.typed, id, new Uint8Array(4).fill(9))),
  'grants a call room': (send, id) => send(encodeSandboxdFrame(FRAME.more, id, new Uint8Array(4).fill(255))),
  'starts a command twice': (send, id) => {
    for (let n = 0; n < 2; n++) send(encodeSandboxdFrame(FRAME.started, id, encodeNumber(7)))
  },
  'starts a command and ends': (send, id) => {
    send(encodeSandboxdFrame(FRAME.started, id, encodeNumber(7)))
    process.exit(0)
  },
  ends: () => process.exit(0),
  stops: () => process.kill(process.pid, 'SIGSTOP'),
}

/** What one may do that loses its server at once. */
export const FALSE_DEEDS = Object.keys(DEEDS).filter((deed) => deed !== 'stops')

/** Does one of `DEEDS` on the socket that a sandboxd inherits. */
async function runFalsely(deed: string): Promise<void> {
  let socket: Bun.Socket | null = null
  let unsent = Buffer.alloc(0)
  const flush = (): void => {
    unsent = unsent.subarray(Math.max(0, socket?.write(unsent) ?? 0))
  }
  const send = (bytes: Uint8Array): void => {
    unsent = Buffer.concat([unsent, bytes])
    flush()
  }
  const reader = new FrameReader(2 ** 26, (kind, id, payload) => {
    if (kind === FRAME.configure) send(encodeSandboxdFrame(FRAME.ready, 0))
    else if (kind === FRAME.ping) send(encodeSandboxdFrame(FRAME.pong, 0))
    else if (kind === FRAME.shutdown) process.exit(0)
    else if (kind === FRAME.spawn && decodeJson(payload) !== null) DEEDS[deed]?.(send, id)
  })
  await Bun.connect({
    fd: 3,
    socket: {
      open(opened) {
        socket = opened
      },
      data: (_, chunk) => reader.push(new Uint8Array(chunk)),
      drain: flush,
      close: () => process.exit(0),
    },
  })
}

if (import.meta.main) await runFalsely(process.argv[2] ?? '')
