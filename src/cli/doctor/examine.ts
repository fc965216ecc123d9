import { rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import type { Enforced } from '../../compute/driver.ts'
import { localDrivers } from '../../compute/drivers.ts'
import { selfCommand } from '../../compute/self.ts'
import { type Isolation, loadConfig, reachLoopbackDirectly } from '../../config/config.ts'
import { createLogger } from '../../runtime/logger.ts'
import { readInstance } from '../../storage/data-directory.ts'
import { makeTemporary } from '../../storage/ephemeral.ts'
import { findDataDirectory } from '../instance.ts'
import type { Terminal } from '../terminal.ts'
import { type VersionInfo, versionInfo } from '../version.ts'
import type { Finding } from './finding.ts'
import { examineIsolation } from './isolation.ts'
import { examineDirectory, examineGit, examineInstance, examinePort } from './machine.ts'
import { examineTerminal } from './terminal.ts'

/** All findings on this machine. */
export interface Report extends VersionInfo {
  /** Whether berth can run as it is configured. */
  ok: boolean
  /** The tier that servers would run under, null where none can be used. */
  isolation: Isolation | null
  /** What that tier enforces. */
  enforced: Enforced | null
  findings: Finding[]
}

/**
 * Looks at everything, as the configuration of this directory and environment would have it.
 *
 * @param data the data directory, in place of the configured one
 * @throws StartupError for a bad configuration
 */
export async function examine(data: string | undefined, { env, cwd }: Terminal): Promise<Report> {
  const config = loadConfig({ flags: data === undefined ? {} : { data }, env, cwd })
  const running = readInstance(findDataDirectory(data, env, cwd))?.base_url ?? null
  reachLoopbackDirectly()
  // The tiers are tried in a directory of their own: looking must not make a data directory.
  const trial = makeTemporary(tmpdir(), 'berth-doctor-')
  try {
    const path = env.PATH ?? ''
    const drivers = localDrivers({
      self: selfCommand(process.execPath, Bun.main),
      path,
      dataDir: trial,
      logger: createLogger('silent', () => {}, Date.now),
    })
    const [isolation, git, instance] = await Promise.all([
      examineIsolation(drivers, config.isolation),
      examineGit(path),
      examineInstance(running),
    ])
    const used = drivers.find(({ name }) => name === isolation.used) ?? null
    const findings = [
      ...isolation.findings,
      await examineTerminal(used),
      git,
      examinePort(config.host, config.port, running),
      examineDirectory(config.dataDir),
      instance,
    ]
    return {
      ok: findings.every(({ status }) => status !== 'failed'),
      ...versionInfo(),
      isolation: isolation.used,
      enforced: isolation.enforced,
      findings,
    }
  } finally {
    rmSync(trial, { recursive: true, force: true })
  }
}
