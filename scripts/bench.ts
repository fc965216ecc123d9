/**
 * Measures speed and memory against baselines of the same run and prints ratios with their goals: what docs/decisions.md and
 * other pages give figures of. Give the names of parts to run only these. With BERTH_BASELINE=EXECUTABLE, `startup` and `exec`
 * measure an earlier berth in turns. With --all, `engines` and `servers` take more servers. Loads go to loopback and end by themselves.
 */
import { benchEngines } from './benchmarks/engines.ts'
import { benchExec } from './benchmarks/exec.ts'
import { benchIdle } from './benchmarks/idle.ts'
import { benchManyServers } from './benchmarks/many-servers.ts'
import { benchPackages } from './benchmarks/packages.ts'
import { benchProxy } from './benchmarks/proxy.ts'
import { benchStartup } from './benchmarks/startup.ts'
import { benchStates } from './benchmarks/states.ts'
import { benchStorage } from './benchmarks/storage.ts'

const all = process.argv.includes('--all')

const parts: Record<string, () => Promise<void>> = {
  startup: benchStartup,
  exec: benchExec,
  idle: benchIdle,
  proxy: benchProxy,
  states: benchStates,
  storage: benchStorage,
  packages: benchPackages,
  engines: () => benchEngines(all),
  servers: () => benchManyServers(all),
}

const wanted = process.argv.slice(2).filter((argument) => argument !== '--all')
const unknown = wanted.filter((name) => !(name in parts))
if (unknown.length > 0) {
  console.error(`No such part: ${unknown.join(', ')}. Parts: ${Object.keys(parts).join(', ')}.`)
  process.exit(2)
}
for (const [name, run] of Object.entries(parts)) {
  if (wanted.length === 0 || wanted.includes(name)) await run()
}
