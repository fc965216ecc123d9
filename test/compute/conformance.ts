import { describe } from 'bun:test'
import type { Isolation } from '../../src/config/config.ts'
import { Bench } from './bench.ts'
import { commandTests } from './conformance/commands.ts'
import { endTests } from './conformance/end.ts'
import { folderTests } from './conformance/folders.ts'
import { limitTests } from './conformance/limits.ts'
import { longTests } from './conformance/long.ts'
import { outputTests } from './conformance/output.ts'
import { terminalTests } from './conformance/terminals.ts'
import { toolTests } from './conformance/tools.ts'

/**
 * What every compute driver keeps. A tier that this machine does not offer is passed over with the
 * reason; `isolation` adds what the tier alone promises.
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
  describe(name, () => {
    commandTests(name)
    outputTests(name)
    terminalTests(name)
    endTests(name)
    longTests(name)
    limitTests(name, enforced)
    folderTests(name)
    toolTests(name)
    isolation()
  })
}
