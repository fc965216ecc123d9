import { describe, expect, test } from 'bun:test'
import { randomBytes } from 'node:crypto'
import { mkdirSync, rmdirSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { findBases } from '../../src/compute/limits/cgroup-layout.ts'
import { processesOf } from '../../src/compute/limits/groups.ts'
import { readArguments, readProcess } from '../../src/compute/processes.ts'
import { Bench, driverOn, LIMITS, run, until } from './bench.ts'
import { conformance } from './conformance.ts'
import { show } from './terminal.ts'

await conformance('none', () => {
  test('a terminal works where setsid is missing, and says what does not', async () => {
    await using bench = new Bench('none')
    const bin = join(bench.dataDir, 'bin')
    mkdirSync(bin)
    for (const name of ['sh', 'cat']) symlinkSync(Bun.which(name) ?? '', join(bin, name))
    const driver = driverOn('none', bench.dataDir, bin)
    const sandbox = await driver.start('srv_t', await driver.create('srv_t'), LIMITS)
    try {
      const { exitCode, text } = await show(sandbox, 'test -t 0 && test -t 1 && test -t 2 && echo well')
      expect(exitCode).toBe(0)
      expect(text).toMatch(
        /^berth: Ctrl-C and job control do not work .*setsid is missing.*util-linux.*\r\nwell\r\n$/,
      )
    } finally {
      await sandbox.stop()
    }
  })

  const parents = groupParents()
  if (parents.length === 0) console.error('SKIP what leaves its control group: none can be made here')

  describe.skipIf(parents.length === 0)('a process that has left its control group', () => {
    test('ends with its server, also if sandboxd was killed first', async () => {
      await using bench = new Bench('none')
      using elsewhere = otherGroups(parents)
      const sandbox = await bench.start()
      await run(sandbox, `(${elsewhere.enter}; exec sleep 300) & echo`)
      await until('it has left', () => elsewhere.pids().length > 0)
      const adopters = (): number[] => elsewhere.pids().flatMap((pid) => readProcess(pid)?.parent ?? [])
      const [sandboxd = 0] = adopters()
      process.kill(sandboxd, 'SIGKILL')
      // Nothing else runs here until it has no parent left that leads to it.
      while (adopters().includes(sandboxd)) Bun.sleepSync(1)
      await sandbox.exited
      expect(elsewhere.pids()).toEqual([])
    })

    test('is ended by the next start if berth was killed and sandboxd was stopped', async () => {
      await using bench = new Bench('none')
      using elsewhere = otherGroups(parents)
      const command = `${elsewhere.enter}; kill -STOP $PPID; exec sleep 300`
      const program = [process.execPath, join(import.meta.dir, 'conformance/host.ts'), 'none']
      const host = Bun.spawn([...program, bench.dataDir, command], { stdio: ['ignore', 'ignore', 'inherit'] })
      await until('it has left', async () => (await bench.commands()).some((pid) => isSleep(pid)))
      host.kill('SIGKILL')
      await host.exited
      expect(elsewhere.pids()).not.toEqual([])
      await driverOn('none', bench.dataDir)
        .takeStock([{ kind: 'local', folder: 'servers/srv_host' }], [])
        .end()
      expect(elsewhere.pids()).toEqual([])
    })
  })
})

/** Whether a process is the sleep of a command. */
const isSleep = (pid: number): boolean => readArguments(pid)[0] === 'sleep'

/** The directories in which this process can make control groups, one for each hierarchy. */
function groupParents(): string[] {
  const found = Object.values(findBases()).flatMap(
    (bases) => bases.find(({ dir }) => canMake(dir))?.dir ?? [],
  )
  return [...new Set(found)]
}

function canMake(dir: string): boolean {
  const group = join(dir, `berth-test-${randomBytes(6).toString('hex')}`)
  try {
    mkdirSync(group)
    rmdirSync(group)
    return true
  } catch {
    return false
  }
}

/** Control groups that no berth has made, the shell command that enters them, and those that are in them. */
function otherGroups(parents: readonly string[]): { enter: string; pids(): number[] } & Disposable {
  const name = `berth-test-${randomBytes(6).toString('hex')}`
  const groups = parents.map((dir) => join(dir, name))
  for (const group of groups) mkdirSync(group)
  const pids = (): number[] => [...new Set(groups.flatMap(processesOf))]
  return {
    enter: groups.map((group) => `sh -c 'echo $PPID > ${group}/cgroup.procs'`).join('; '),
    pids,
    [Symbol.dispose]() {
      for (const pid of pids()) process.kill(pid, 'SIGKILL')
      while (pids().length > 0) Bun.sleepSync(10)
      for (const group of groups) rmdirSync(group)
    },
  }
}
