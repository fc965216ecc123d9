import type { ReadyInfo } from '../instance/start.ts'
import type { BannerParts } from './banner.ts'
import { type ProcessContext, writeLineSync } from './process-context.ts'

/**
 * Prints on stdout that an instance is ready. With `json` it is one line of JSON, written without opening a stream,
 * else the banner, which is loaded then.
 */
export const printReady = async (
  json: boolean,
  ready: ReadyInfo,
  context: ProcessContext,
  parts: BannerParts,
): Promise<void> =>
  json
    ? writeLineSync(JSON.stringify({ event: 'ready', ...ready }))
    : context.stdout.write((await import('./banner.ts')).banner(ready, context, parts))
