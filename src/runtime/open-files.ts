import { readdirSync, statSync } from 'node:fs'
import { readTextOrNull } from './if-present.ts'

/** A directory of the descriptors of this process. */
const DESCRIPTORS = '/proc/self/fd'

/** Returns how many descriptors this process may have open; null if the system does not tell. */
export function maxOpenFiles(): number | null {
  const [, limit] = /^Max open files\s+(\d+)/m.exec(readTextOrNull('/proc/self/limits') ?? '') ?? []
  return limit === undefined ? null : Number(limit)
}

/** Returns how many descriptors this process has open. The kernel tells as the size of a directory from Linux 6.2 on. */
export const openFiles = (): number => statSync(DESCRIPTORS).size || readdirSync(DESCRIPTORS).length
