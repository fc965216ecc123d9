import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { STAGING } from '../../compute/local/staging.ts'
import { isTemporary } from '../../compute/local/temporary.ts'
import type { Leak } from './leak.ts'

/** How a temporary folder of a dead instance is told. */
export const temporaryLeak = (path: string): Leak => ({
  kind: 'folder',
  id: path,
  detail: 'the temporary folder of an instance that was killed',
  remedy: `rm -rf ${path}`,
})

/** What was being prepared on the servers of a data folder that no instance runs on. */
export function stagingLeaks(dataDir: string): Leak[] {
  const servers = join(dataDir, 'servers')
  return list(servers).flatMap((server) => {
    const staging = join(servers, server, STAGING)
    return list(staging)
      .filter(isTemporary)
      .map(
        (name): Leak => ({
          kind: 'folder',
          id: join(staging, name),
          detail: `what was being prepared for ${server}`,
          remedy: `rm -rf ${join(staging, name)}; the next start on ${dataDir} does it too`,
        }),
      )
  })
}

const list = (folder: string): string[] => (existsSync(folder) ? readdirSync(folder) : [])
