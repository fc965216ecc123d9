import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Isolation } from '../../src/config/config.ts'
import { driverOn } from '../compute/bench.ts'

const TIERS: readonly Isolation[] = ['bubblewrap', 'landlock', 'none']

/** Every tier with why it cannot be had on this machine, or null where it can. */
export function probedTiers(): Promise<(readonly [Isolation, string | null])[]> {
  return Promise.all(TIERS.map(async (isolation) => [isolation, await missing(isolation)] as const))
}

async function missing(isolation: Isolation): Promise<string | null> {
  const dataDir = mkdtempSync(join(tmpdir(), 'berth-probe-'))
  try {
    const probe = await driverOn(isolation, dataDir).probe()
    return probe.available ? null : probe.reason
  } finally {
    rmSync(dataDir, { recursive: true, force: true })
  }
}
