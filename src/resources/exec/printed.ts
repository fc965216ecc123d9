import { utf8Text } from '../../runtime/decode.ts'
import type { ExecResult } from './model.ts'
import type { Stream } from './output.ts'

/** The fields of a result that have what a command printed. */
export type PrintedFields = Pick<ExecResult, 'stdout' | 'stderr' | 'stdoutBase64' | 'stderrBase64'>

/**
 * Returns what a command printed to a stream as fields of a result: as text, with U+FFFD for bytes that are not UTF-8, and
 * then exactly too.
 */
export function printedFields(stream: Stream, bytes: Uint8Array): Record<string, string> {
  const exact = utf8Text(bytes)
  if (exact !== null) return { [stream]: exact }
  const text = new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes)
  return { [stream]: text, [`${stream}Base64`]: Buffer.from(bytes).toString('base64') }
}
