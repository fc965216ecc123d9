/**
 * Bun's sockets have descriptors and can be made of descriptors, which its own types do not say: `connect`, `listen` and
 * `udpSocket` adopt `fd` in place of an address.
 */
declare module 'bun' {
  interface AdoptedSocket<Data> {
    readonly fd: number
    readonly data?: Data
    readonly allowHalfOpen?: boolean
    readonly socket: SocketHandler<Data>
  }
  interface Socket<Data = undefined> {
    readonly fd: number
  }
  function connect<Data = undefined>(options: AdoptedSocket<Data>): Promise<Socket<Data>>
  function udpSocket(options: {
    readonly fd: number
    readonly socket: udp.SocketHandler<'uint8array'>
  }): Promise<udp.Socket<'uint8array'>>
  function listen<Data = undefined>(options: AdoptedSocket<Data>): TCPSocketListener<Data>
}
