/** The limits of one source. */
export interface SourceLimits {
  /** Files, directories and links together. */
  entries: number
  /** Bytes of all files, unpacked. */
  bytes: number
  /** Bytes of an archive that is fetched from a URL. */
  archiveBytes: number
  /** Milliseconds of real time for the whole fetch. */
  timeoutMs: number
}

const MIB = 1024 * 1024

/** The limits of every project's source. */
export const SOURCE_LIMITS: SourceLimits = {
  entries: 20_000,
  bytes: 1024 * MIB,
  archiveBytes: 256 * MIB,
  timeoutMs: 5 * 60_000,
}

/** Formats a number of bytes for messages. */
export function formatMebibytes(bytes: number): string {
  return bytes >= MIB ? `${Math.floor(bytes / MIB)} MiB` : `${bytes} bytes`
}
