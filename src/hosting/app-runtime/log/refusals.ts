import { describeRefusal, RefusalCollector } from '../../../compute/outbound-control.ts'
import type { Sandbox } from '../../../compute/sandbox.ts'
import type { AppLog } from './log.ts'

/** Notes in an app's log what its server is refused until the result ends, with what would allow it. */
export const noteRefusals = ({ outboundControl }: Sandbox, log: AppLog): RefusalCollector =>
  new RefusalCollector(outboundControl, (refused) => log.append('berth', describeRefusal(refused)))
