/**
 * Measures speed and memory against baselines of the same run and prints ratios with their goals. Give
 * the names of parts to run only these. Loads go to loopback and end by themselves.
 */
import { join } from 'node:path'

/** Each part loads what it needs when it runs. */
const parts: Record<string, () => Promise<void>> = {
  startup: async () => (await import('./benchmarks/startup.ts')).benchStartup(),
  cli: async () => (await import('./benchmarks/cli.ts')).benchCli(),
  disposable: async () => (await import('./benchmarks/disposable.ts')).benchDisposable(),
  files: async () => (await import('./benchmarks/files.ts')).benchFiles(),
  exec: async () => (await import('./benchmarks/exec.ts')).benchExec(),
  terminals: async () => (await import('./benchmarks/terminals.ts')).benchTerminals(),
  throughput: async () => (await import('./benchmarks/throughput.ts')).benchThroughput(),
  journal: async () => (await import('./benchmarks/journal.ts')).benchJournal(),
  access: async () => (await import('./benchmarks/access.ts')).benchAccess(),
  mcp: async () => (await import('./benchmarks/mcp.ts')).benchMcp(),
  memory: async () => (await import('./benchmarks/memory.ts')).benchMemory(),
  webhooks: async () => (await import('./benchmarks/webhooks.ts')).benchWebhooks(),
  idle: async () => (await import('./benchmarks/idle.ts')).benchIdle(),
  many: async () => (await import('./benchmarks/idle.ts')).benchMany(),
  sleeping: async () => (await import('./benchmarks/sleeping.ts')).benchSleeping(),
  projects: async () => (await import('./benchmarks/projects.ts')).benchProjects(),
  push: async () => (await import('./benchmarks/push.ts')).benchPush(),
  builds: async () => (await import('./benchmarks/builds.ts')).benchBuilds(),
  proxy: async () => (await import('./benchmarks/proxy.ts')).benchProxy(),
  network: async () => (await import('./benchmarks/network.ts')).benchNetwork(),
  namespace: async () => (await import('./benchmarks/namespace.ts')).benchNamespace(),
  static: async () => (await import('./benchmarks/static.ts')).benchStatic(),
  tasks: async () => (await import('./benchmarks/tasks.ts')).benchTasks(),
  dashboard: async () => (await import('./benchmarks/dashboard.ts')).benchDashboard(),
  suite: async () => (await import('./benchmarks/suite.ts')).benchSuite(),
  states: async () => (await import('./benchmarks/states.ts')).benchStates(),
  packages: async () => (await import('./benchmarks/packages.ts')).benchPackages(),
  // Its figures of memory are those of whole processes, which it starts itself.
  storage: async () => {
    const script = join(import.meta.dir, 'benchmarks/storage.ts')
    await Bun.spawn([process.execPath, script], { stdio: ['ignore', 'inherit', 'inherit'] }).exited
  },
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
