import { afterAll, beforeAll, describe } from 'bun:test'
import { registerEngine } from '../compute/bench.ts'
import { commandTests } from '../compute/conformance/commands.ts'
import { contract } from '../compute/conformance.ts'
import { type EngineKind, EngineRig, missingForEngine } from '../support/engines/engine-rig.ts'
import { everyCombination } from '../support/thorough.ts'
import { engineFaultTests, engineImageTests, engineStockTests } from './docker-faults.ts'
import { engineLeakTests } from './docker-leaks.ts'
import { engineOutageTests } from './docker-outages.ts'
import { engineLimitTests } from './limits.ts'

/** Tests servers on an engine that is started for that; is passed over with the reason where this machine lacks one. */
function onEngine(kind: EngineKind, tests: (rig: () => EngineRig) => void): void {
  const missing = missingForEngine(kind)
  if (missing !== null) console.error(`SKIP servers on ${kind}: ${missing}`)
  describe.skipIf(missing !== null)(`servers on ${kind}`, () => {
    let started: EngineRig | null = null
    const rig = (): EngineRig => {
      if (started === null) throw new Error('the engine was not started')
      return started
    }
    beforeAll(async () => {
      started = await EngineRig.start(kind)
      await started.prepare()
    }, 300_000)
    afterAll(() => started?.[Symbol.asyncDispose](), 60_000)
    registerEngine(kind, (dataDir) => rig().driver(dataDir))
    tests(rig)
  })
}

onEngine('docker', (rig) => {
  contract('docker', { output: true, end: true })
  engineLimitTests((dataDir) => rig().driver(dataDir, { isLocal: false }), ['lo'])
  engineStockTests(rig)
  engineImageTests(rig)
  engineLeakTests(rig)
  // Last: they restart the engine.
  engineOutageTests(rig)
  engineFaultTests(rig)
})

// The same driver, by the same requests: what differs is how the engine carries them out.
onEngine('podman', (rig) => {
  if (everyCombination) contract('podman', { output: true, end: true })
  else commandTests('podman')
  engineStockTests(rig)
})
