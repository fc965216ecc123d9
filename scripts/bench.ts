/**
 * Measures speed and memory against baselines of the same run and prints ratios with their goals: what docs/decisions.md and
 * other pages give figures of. Give the names of parts to run only these. With BERTH_BASELINE=EXECUTABLE, `startup` and `exec`
 * measure an earlier berth in turns. Loads go to loopback and end by themselves.
 */
import { benchExec } from './benchmarks/exec.ts'
import { benchIdle } from './benchmarks/idle.ts'
import { benchPackages } from './benchmarks/packages.ts'
import { benchProxy } from './benchmarks/proxy.ts'
import { benchStartup } from './benchmarks/startup.ts'
import { benchStates } from './benchmarks/states.ts'
import { benchStorage } from './benchmarks/storage.ts'

const parts: Record<string, () => Promise<void>> = {
  startup: benchStartup,
  exec: benchExec,
  idle: benchIdle,
  proxy: benchProxy,
  states: benchStates,
  storage: benchStorage,
  packages: benchPackages,
}

const wanted = process.argv.slice(2)
const unknown = wanted.filter((name) => !(name in parts))
if (unknown.length > 0) {
  console.error(`No such part: ${unknown.join(', ')}. Parts: ${Object.keys(parts).join(', ')}.`)
  process.exit(2)
}
for (const [name, run] of Object.entries(parts)) {
  if (wanted.length === 0 || wanted.includes(name)) await run()
}
