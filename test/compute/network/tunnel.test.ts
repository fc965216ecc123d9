import { expect, test } from 'bun:test'
import {
  OutboundTunnel,
  type TunnelSocket,
  WaitingBytes,
} from '../../../src/compute/local/network/outbound/tunnel.ts'
import { until } from '../../support/processes.ts'

const HOST = '127.0.0.1'
const TUNNELS = 60

test('bytes that nobody reads come to 128 MiB at most for a server: a connection with more is cut, and no other', async () => {
  using unread = Bun.listen({
    hostname: HOST,
    port: 0,
    socket: { open: (end) => void end.pause(), data() {} },
  })
  let received = ''
  using reading = Bun.listen({
    ...{ hostname: HOST, port: 0 },
    socket: {
      data(_, bytes) {
        received += bytes
      },
    },
  })
  const accepted: TunnelSocket[] = []
  using server = Bun.listen({
    ...{ hostname: HOST, port: 0 },
    socket: { open: (socket) => void accepted.push(socket), data() {} },
  })
  const waiting = new WaitingBytes()
  let closed = 0
  const open = async (port: number): Promise<OutboundTunnel> => {
    const program = await Bun.connect({ hostname: HOST, port: server.port, socket: { data() {} } })
    await until(() => accepted.length > 0, 'the connection of a program')
    const tunnel = new OutboundTunnel(accepted.pop() as TunnelSocket, waiting, {
      closed: () => {
        closed += 1
      },
      gone: () => program.terminate(),
    })
    await tunnel.dial({ hostname: HOST, port })
    return tunnel
  }
  const tunnels = await Promise.all(Array.from({ length: TUNNELS }, () => open(unread.port)))
  // More than the system keeps of a connection.
  const sent = new Uint8Array(12 * 2 ** 20)
  for (const tunnel of tunnels) tunnel.receive(sent)
  expect(closed).toBeWithin(TUNNELS / 3, TUNNELS - 9)
  const beside = await open(reading.port)
  beside.receive(Buffer.from('a little'))
  await until(() => received === 'a little', 'what another connection sends')
  for (const tunnel of [beside, ...tunnels]) tunnel.cut()
}, 60_000)
