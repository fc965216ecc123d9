import { dirname } from 'node:path'
import type { ComputeDriver, Limits } from '../compute/driver.ts'
import { realPathOrNull } from '../compute/local/machine-files.ts'
import { type ShownTools, selectMachineTools, type ToolPlaces } from '../compute/local/machine-tools.ts'
import { commandOf } from '../compute/local/toolchains.ts'
import type { Machine } from '../hosting/detection/machine.ts'
import { SandboxMachine } from '../hosting/detection/sandbox-machine.ts'
import { titleOf } from '../hosting/detection/versions.ts'
import { messageOf } from '../runtime/error-info.ts'
import type { Finding } from './finding.ts'

/** The tools that are examined, a line each. */
const EXAMINED = ['python', 'node', 'go', 'java', 'mvn', 'gradle', 'cargo', 'ruby', 'php', 'deno']

/** Limits of the server that runs each tool once. */
const TRIAL_LIMITS: Limits = { cpus: 2, memoryBytes: 2 ** 29, processes: 200, storageBytes: 2 ** 26 }

/**
 * Examines which languages' tools servers see, by running each on a server.
 *
 * @param driver of the isolation that servers would have, on a writable directory; null if none is available
 */
export async function examineTools(driver: ComputeDriver | null, places: ToolPlaces): Promise<Finding[]> {
  if (driver === null) return []
  const tools = selectMachineTools(places, driver.name === 'none' ? 'all' : 'selected')
  try {
    return await onTrialServer(driver, async (machine) => [
      ...(await Promise.all(EXAMINED.map((tool) => examineTool(tool, machine, places, tools)))),
      ...examinePath(tools),
    ])
  } catch (error) {
    return [{ name: 'tools', status: 'absent', detail: `not tried: ${messageOf(error)}` }]
  }
}

/** Runs an examination on a server that is gone afterwards. */
async function onTrialServer<T>(
  driver: ComputeDriver,
  examine: (machine: Machine) => Promise<T>,
): Promise<T> {
  const handle = await driver.create('srv_doctor_tools')
  try {
    const sandbox = await driver.start('srv_doctor_tools', handle, TRIAL_LIMITS)
    try {
      return await examine(new SandboxMachine(sandbox))
    } finally {
      await sandbox.stop()
    }
  } finally {
    await driver.destroy(handle)
  }
}

/** Examines one tool: the version that servers see, the further ones, and what of PATH they do not see. */
async function examineTool(
  tool: string,
  machine: Machine,
  { path }: ToolPlaces,
  { leftOut }: ShownTools,
): Promise<Finding> {
  const name = titleOf(tool)
  const command = commandOf(tool)
  const [found, isThere] = await Promise.all([machine.toolchains(tool), machine.has(command)])
  const own = Bun.which(command, { PATH: path })
  const unseen = leftOut.find(({ path: left }) => own === left || (own !== null && dirname(own) === left))
  const loss =
    unseen === undefined || found.some(({ path: seen }) => isSame(seen, own))
      ? ''
      : `; not ${own}: ${unseen.why}`
  if (!isThere) {
    const others = found.length === 0 ? '' : `; not on PATH: ${versionsOf(found)}`
    return { name, status: 'absent', detail: `servers see none${loss}${others}` }
  }
  const check = await machine.check(command)
  const [first, ...others] = found
  if (!check.works) {
    const detail = `${first?.path ?? command} does not run on servers: ${check.error}${loss}`
    return { name, status: 'absent', detail }
  }
  const place = first?.isDefault
    ? `${first.path}${first.source === 'system' ? '' : `, by ${first.source}`}`
    : "berth's own"
  const further = first?.isDefault ? others : found
  const also = further.length === 0 ? '' : `; also ${versionsOf(further)}`
  return {
    name,
    status: 'ok',
    detail: `${first?.isDefault ? first.version : check.version} (${place})${also}${loss}`,
  }
}

const versionsOf = (found: readonly { version: string }[]): string =>
  [...new Set(found.map(({ version }) => version))].join(', ')

const isSame = (seen: string, own: string | null): boolean =>
  own !== null && realPathOrNull(seen) === realPathOrNull(own)

/** Lists the directories of PATH that servers do not see. */
function examinePath({ leftOut }: ShownTools): Finding[] {
  if (leftOut.length === 0) return []
  const detail = leftOut.map(({ path, why }) => `${path}: ${why}`).join('; ')
  return [{ name: 'PATH', status: 'ok', detail: `servers do not see ${detail}` }]
}
