import type { ComputeDriver, Enforced } from '../../compute/driver.ts'
import { probeDrivers } from '../../compute/select.ts'
import type { Config, Isolation } from '../../config/config.ts'
import { absent, type Finding, failed, ok } from './finding.ts'

/** What the isolation tiers can do on this machine. */
export interface IsolationReport {
  /** The tier that servers would run under, null where none can be used. */
  used: Isolation | null
  /** What that tier enforces. */
  enforced: Enforced | null
  findings: Finding[]
}

const LIMITS: [keyof Enforced, string][] = [
  ['cpu', 'CPU limit'],
  ['memory', 'memory limit'],
  ['processes', 'process limit'],
  ['disk', 'disk limit'],
  ['network', 'network'],
]

/**
 * Tries every tier for real, says which one servers would run under, and what that one enforces.
 *
 * @param drivers strongest first
 * @param wanted the tier that the configuration asks for
 */
export async function examineIsolation(
  drivers: readonly ComputeDriver[],
  wanted: Config['isolation'],
): Promise<IsolationReport> {
  const probed = await probeDrivers(drivers)
  const used = probed.find(({ name, probe }) => probe.available && (wanted === 'auto' || wanted === name))
  const findings = probed.map(({ name, probe }): Finding => {
    if (!probe.available) {
      const state = name === wanted ? failed : absent
      return state(name, `not available: ${probe.reason}`, probe.remedy)
    }
    const weaker = (probe.notes ?? []).map((note) => `; weaker here: ${note}`).join('')
    return ok(name, `${name === used?.name ? 'works, and is used' : 'works'}${weaker}`)
  })
  const enforced = used?.probe.available ? await used.probe.enforced() : null
  for (const [key, label] of enforced ? LIMITS : []) findings.push(limit(label, enforced?.[key] ?? 'none'))
  if (!used && wanted === 'auto') {
    findings.push(failed('isolation', 'no tier can be used', 'Follow one of the remedies above.'))
  }
  return { used: used?.name ?? null, enforced, findings }
}

const limit = (label: string, mechanism: string): Finding =>
  mechanism === 'none'
    ? { name: label, status: 'absent', detail: 'not enforced on this machine' }
    : ok(label, mechanism)
