import { describe } from 'bun:test'
import { ISOLATIONS, type Isolation } from '../../src/config/config.ts'
import { everyCombination } from '../support/thorough.ts'
import { Bench, type Subject } from './bench.ts'
import { commandTests } from './conformance/commands.ts'
import { endTests, machineEndTests } from './conformance/end.ts'
import { kernelMemoryTests } from './conformance/kernel-memory.ts'
import { limitTests, storageTests } from './conformance/limits.ts'
import { longTests, machinePortTests, portTests } from './conformance/long.ts'
import { outputTests } from './conformance/output.ts'
import { processTests } from './conformance/processes.ts'
import { folderTests } from './conformance/server-directories.ts'
import { terminalEndTests, terminalOutputTests, terminalTests } from './conformance/terminals.ts'
import { machineToolTests, toolTests } from './conformance/tools.ts'

/**
 * Tests a driver of this machine: the contract of every driver, and what holds of servers that are processes here. An
 * isolation that this machine does not offer is passed over with the reason.
 *
 * Three kinds of tests run once, unless every combination is tried. Output passes between sandboxd and its commands, and
 * the isolation has no part in it: the strongest one of this machine is tried. Ends and limits depend on whether the
 * sandbox has namespaces of its own: bubblewrap is tried, and of the others the stronger one.
 *
 * @param isolation adds what the isolation alone promises
 */
export async function conformance(name: Isolation, isolation: () => void): Promise<void> {
  await using bench = new Bench(name)
  const probe = await bench.driver.probe()
  if (!probe.available) {
    console.error(`SKIP ${name}: ${probe.reason} ${probe.remedy}`)
    describe.skip(`${name}: ${probe.reason}`, () => {})
    return
  }
  const enforced = await probe.enforced()
  const outputIsTried = !everyCombination && (await isAnyAvailable(strongerThan(name)))
  const endIsTried =
    !everyCombination && (await isAnyAvailable(strongerThan(name).filter((one) => one !== 'bubblewrap')))
  describe(name, () => {
    contract(name, { output: !outputIsTried, end: !endIsTried })
    if (!endIsTried) {
      machineEndTests(name, enforced)
      limitTests(name, enforced)
      kernelMemoryTests(name, enforced)
    }
    machinePortTests(name)
    folderTests(name)
    machineToolTests(name)
    isolation()
  })
}

/**
 * Tests what every driver guarantees, wherever its servers are. Looks at this machine only to see that a server's
 * processes are gone.
 *
 * @param output whether to test how output passes
 * @param end whether to test how commands and servers end
 */
export function contract(subject: Subject, { output, end }: { output: boolean; end: boolean }): void {
  commandTests(subject)
  terminalTests(subject)
  if (output) {
    outputTests(subject)
    terminalOutputTests(subject)
    longTests(subject)
  }
  if (end) {
    endTests(subject)
    terminalEndTests(subject)
    storageTests(subject)
  }
  portTests(subject)
  processTests(subject)
  toolTests(subject)
}

/** The isolations that are stronger than another: the list has the strongest first. */
const strongerThan = (name: Isolation): Isolation[] => ISOLATIONS.slice(0, ISOLATIONS.indexOf(name))

async function isAnyAvailable(names: readonly Isolation[]): Promise<boolean> {
  for (const name of names) {
    await using bench = new Bench(name)
    if ((await bench.driver.probe()).available) return true
  }
  return false
}
