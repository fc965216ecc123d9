import { describeRefusal, RefusalCollector, type Sandbox } from '../../../compute/sandbox.ts'
import type { AppLog } from './log.ts'

/** Notes in an app's log what its server is refused until the result ends, with what would allow it. */
export const noteRefusals = ({ outboundControl }: Sandbox, log: AppLog): RefusalCollector =>
  new RefusalCollector(outboundControl, (refused) => log.append('berth', describeRefusal(refused)))

/** Matches what programs say whose Unix socket is refused: the error's name and its text (errno(3)). */
const REFUSED = /\bEAFNOSUPPORT\b|\bAddress family not supported\b/i

const HINT =
  'The isolation landlock refuses Unix sockets, which this program seems to need. Start berth with --allow-unix-sockets, or with the isolation bubblewrap; "berth help isolation" says what else helps.'

/**
 * Returns a function that takes the lines of a program, and passes the remedy on once, at the first that says that a Unix socket was
 * refused; undefined if the server does not refuse them.
 */
export function socketHint(
  { refusesUnixSockets }: Pick<Sandbox, 'refusesUnixSockets'>,
  pass: (hint: string) => void,
): ((line: string) => void) | undefined {
  if (refusesUnixSockets !== true) return undefined
  let isTold = false
  return (line) => {
    if (isTold || !REFUSED.test(line)) return
    isTold = true
    pass(HINT)
  }
}
