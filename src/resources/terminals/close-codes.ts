import { SHARED_ENDS, type SocketEnd } from '../../http/socket-ends.ts'

/** Why berth closes the socket of a viewer, by what has happened. docs/terminals.md lists them. */
export const SOCKET_ENDS = {
  ...SHARED_ENDS,
  exited: { code: 1000, reason: 'the program has ended' },
  badFrame: { code: 4000, reason: 'a text frame is {"resize":[columns,rows]}, each from 1 to 10000' },
  serverStopped: { code: 4003, reason: 'the server has stopped' },
  serverDeleted: { code: 4004, reason: 'the server was deleted' },
  deleted: { code: 4006, reason: 'the terminal was deleted' },
  silent: { code: 4008, reason: 'the viewer has not read or answered for two minutes' },
  typedTooMuch: { code: 4009, reason: 'more was typed than the program reads' },
} as const satisfies Record<string, SocketEnd>
