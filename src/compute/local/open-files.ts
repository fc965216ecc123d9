import { readdirSync, statSync } from 'node:fs'
import { readTextOrNull } from '../../runtime/read-text.ts'
import { ComputeError } from '../compute-error.ts'

/** A directory of the descriptors of this process. */
const DESCRIPTORS = '/proc/self/fd'

/** The share of this process's descriptors that servers leave to requests, connections and files. */
const SHARE_FOR_OTHERS = 1 / 8

/** Returns how many descriptors this process may have open; null if the system does not tell. */
export function maxOpenFiles(): number | null {
  const [, limit] = /^Max open files\s+(\d+)/m.exec(readTextOrNull('/proc/self/limits') ?? '') ?? []
  return limit === undefined ? null : Number(limit)
}

/**
 * Refuses one more server if its descriptors would take those that everything else needs.
 *
 * @param limit the outcome of `maxOpenFiles`
 * @throws ComputeError
 */
export function checkOpenFiles(limit: number | null): void {
  if (limit === null || openFiles() < limit * (1 - SHARE_FOR_OTHERS)) return
  throw new ComputeError(
    `berth has nearly as many files open as the system allows, ${limit}, and each running server takes some. Stop servers, or start berth again after "ulimit -n" with a greater number (with systemd: LimitNOFILE).`,
  )
}

/** Returns how many descriptors this process has open. The kernel tells as the size of a directory from Linux 6.2 on. */
const openFiles = (): number => statSync(DESCRIPTORS).size || readdirSync(DESCRIPTORS).length
