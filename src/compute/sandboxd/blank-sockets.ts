import { closeSync } from 'node:fs'
import { loadDescriptorCalls } from './descriptors.ts'
import { openLibc } from './libc.ts'
import { BLANK_SOCKETS, DESCRIPTORS_FD, NETLINK_SOCKETS, REPORT_READER_FD } from './protocol.ts'

const SOCK_CLOEXEC = 0o2000000
const SOCK_NONBLOCK = 0o4000

/**
 * Makes `BLANK_SOCKETS` and `NETLINK_SOCKETS` in the network of this process and sends them to berth over
 * `DESCRIPTORS_FD`, which it then closes, and `REPORT_READER_FD` too. A socket belongs to the network that it was made
 * in, whoever uses it. Leaves out those of IPv6 if the kernel has none. Must be called before the first command, so that
 * nothing on the server ever has a copy.
 */
export function sendBlankSockets(): void {
  const { socket } = openLibc({ socket: { args: ['int', 'int', 'int'], returns: 'int' } })
  const made = [...BLANK_SOCKETS.map((blank) => ({ ...blank, protocol: 0 })), ...NETLINK_SOCKETS].map(
    ({ domain, type, protocol }) => socket(domain, type | SOCK_NONBLOCK | SOCK_CLOEXEC, protocol),
  )
  const open = made.filter((descriptor) => descriptor >= 0)
  try {
    loadDescriptorCalls().send(DESCRIPTORS_FD, open)
  } finally {
    for (const descriptor of [...open, DESCRIPTORS_FD, REPORT_READER_FD]) closeSync(descriptor)
  }
}
