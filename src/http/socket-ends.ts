import type { Caller } from './caller.ts'

/** Why berth closes a WebSocket: a code for programs (RFC 6455, section 7.4.2), a reason for people. */
export interface SocketEnd {
  readonly code: number
  readonly reason: string
}

/** The reasons that all WebSockets of the API have in common. docs/terminals.md and docs/changes.md list them. */
export const SHARED_ENDS = {
  sessionEnded: { code: 4001, reason: "the browser's session has ended" },
  credentialChanged: { code: 4002, reason: 'the key or token was ended, or reaches something else now' },
  stopping: { code: 4005, reason: 'berth is stopping or its state is replaced' },
} as const satisfies Record<string, SocketEnd>

/** Returns the reason to close a WebSocket whose caller's credential has ended. */
export const credentialEnd = ({ credentialId }: Caller): SocketEnd =>
  SHARED_ENDS[credentialId.startsWith('ses_') ? 'sessionEnded' : 'credentialChanged']
