/** Why berth closes the socket of a viewer: a code for programs (RFC 6455, section 7.4.2), a reason for people. */
export interface SocketEnd {
  readonly code: number
  readonly reason: string
}

/** The reasons, by what has happened. docs/terminals.md lists them. */
export const SOCKET_ENDS = {
  exited: { code: 1000, reason: 'the program has ended' },
  badFrame: { code: 4000, reason: 'a text frame is {"resize":[columns,rows]}, each from 1 to 10000' },
  sessionEnded: { code: 4001, reason: "the browser's session has ended" },
  credentialChanged: { code: 4002, reason: 'the key or token was ended, or reaches something else now' },
  serverStopped: { code: 4003, reason: 'the server has stopped' },
  serverDeleted: { code: 4004, reason: 'the server was deleted' },
  stopping: { code: 4005, reason: 'berth is stopping or its state is replaced' },
  deleted: { code: 4006, reason: 'the terminal was deleted' },
  silent: { code: 4008, reason: 'the viewer has not read or answered for two minutes' },
  typedTooMuch: { code: 4009, reason: 'more was typed than the program reads' },
} as const satisfies Record<string, SocketEnd>
