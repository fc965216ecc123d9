/** How much one source may bring, and how long that may take. */
export interface SourceLimits {
  /** Files, directories and links together. */
  entries: number
  /** Bytes of all files, unpacked. */
  bytes: number
  /** Bytes of an archive that is fetched from a URL. */
  archiveBytes: number
  /** Milliseconds, of the machine's time. */
  timeoutMs: number
}

const MIB = 1024 * 1024

export const SOURCE_LIMITS: SourceLimits = {
  entries: 20_000,
  bytes: 1024 * MIB,
  archiveBytes: 256 * MIB,
  timeoutMs: 5 * 60_000,
}

/** Returns bytes in words, for messages. */
export function inWords(bytes: number): string {
  return bytes >= MIB ? `${Math.floor(bytes / MIB)} MiB` : `${bytes} bytes`
}
