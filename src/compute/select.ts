import type { Isolation } from '../config/config.ts'
import { StartupError } from '../errors.ts'
import type { ComputeDriver, Enforced, Probe } from './driver.ts'

/** A driver that cannot be used here. */
interface RejectedDriver {
  name: Isolation
  reason: string
  remedy: string
}

/** The driver in force. */
export interface SelectedDriver {
  driver: ComputeDriver
  /** Whether each server has its own network here, or shares this machine's. */
  network: 'own' | 'shared'
  /** Returns what it really enforces on this machine. */
  enforced(): Promise<Enforced>
  /** Ways in which the isolation is weaker here than its name promises. */
  notes: readonly string[]
  /** The stronger ones, which were tried and cannot be used. */
  rejected: RejectedDriver[]
}

/**
 * Tries the drivers in the given order, strongest first, and takes the first that works, or the one
 * that was asked for. Throws `StartupError` if that one, or none at all, can be used.
 */
export async function selectDriver(
  wanted: 'auto' | Isolation,
  drivers: readonly ComputeDriver[],
): Promise<SelectedDriver> {
  const rejected: RejectedDriver[] = []
  for (const driver of drivers) {
    if (wanted !== 'auto' && driver.name !== wanted) continue
    const probe = await driver.probe()
    if (probe.available) {
      const { network, enforced, notes = [] } = probe
      return { driver, network, enforced, notes, rejected }
    }
    rejected.push({ name: driver.name, reason: probe.reason, remedy: probe.remedy })
  }
  const [last] = rejected.slice(-1)
  if (last === undefined) throw new StartupError(`There is no isolation "${wanted}" on this system.`)
  throw new StartupError(
    `Isolation ${last.name} cannot be used here: ${last.reason} ${last.remedy} Or choose --isolation auto.`,
  )
}

/** Tries every driver, to show what this machine offers. */
export async function probeDrivers(
  drivers: readonly ComputeDriver[],
): Promise<Array<{ name: Isolation; probe: Probe }>> {
  return Promise.all(drivers.map(async (driver) => ({ name: driver.name, probe: await driver.probe() })))
}
