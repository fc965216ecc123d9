import { utf8Text } from './decode.ts'

/** The fields of a result that have what a command printed. */
export interface PrintedFields {
  readonly stdout: string
  readonly stderr: string
  readonly stdoutBase64?: string
  readonly stderrBase64?: string
}

/**
 * Returns what a command printed to a stream as fields of a result: as text, with U+FFFD for bytes that are not UTF-8, and
 * then exactly too.
 */
export function printedFields(stream: 'stdout' | 'stderr', bytes: Uint8Array): Partial<PrintedFields> {
  const exact = utf8Text(bytes)
  if (exact !== null) return { [stream]: exact }
  return { [stream]: readableText(bytes), [`${stream}Base64`]: Buffer.from(bytes).toString('base64') }
}

/** Decodes bytes as UTF-8, with U+FFFD for those that are not. */
export const readableText = (bytes: Uint8Array): string =>
  new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes)
