import { describe, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { isStopped, listProcesses, readProcess } from '../../src/compute/processes.ts'
import { ComputeError } from '../../src/compute/sandbox.ts'
import { haltedBwrap } from '../support/halted-bwrap.ts'
import { pathInFileSystem } from '../support/processes.ts'
import { startSurvivor } from '../support/survivor.ts'
import { Bench, driverOn, LIMITS, run, TEST_PATH, until } from './bench.ts'
import { EPERM, inScript, runScript } from './confinement.ts'

const ATTACH = 16

/**
 * Takes process 1 of the sandbox over by tracing it: has it make the system call that makes it live on when its parent dies
 * (`prctl(PR_SET_PDEATHSIG, 0)`), and keeps it stopped. Then stops sandboxd, and counts in a file for as long as it lives.
 */
const OUTLIVE = `
  import { appendFileSync } from 'node:fs'
  const trace = (request, data = 0) => call(arm ? 117 : 101, request, 1, 0, data)
  const stopped = () => call(arm ? 260 : 61, 1, ptr(new Uint8Array(4)), 0x40000000, 0)
  const attached = trace(${ATTACH})
  if (attached === 0 && !arm) {
    stopped()
    const registers = new BigUint64Array(27)
    trace(12, ptr(registers))
    registers[10] = 157n
    registers[14] = 1n
    registers[13] = 0n
    registers[15] = -1n
    registers[16] -= 2n
    trace(13, ptr(registers))
    trace(9)
    stopped()
  }
  process.kill(Number(process.env.SANDBOXD), 'SIGSTOP')
  for (let beat = 0; beat < 600; beat++) {
    appendFileSync('alive', attached + ' ')
    await Bun.sleep(50)
  }
`

/** What a command cannot do to outlive its berth. */
export function outliveTests(): void {
  describe('process 1 of the sandbox', () => {
    test('cannot be traced, nor its memory be written; so no tracer can leave it stopped', async () => {
      await using bench = new Bench('bubblewrap')
      const sandbox = await bench.start()
      const command = `
        import { openSync } from 'node:fs'
        const open = (path, flags) => { try { return openSync(path, flags) } catch ({ code }) { return code } }
        console.log(call(arm ? 117 : 101, ${ATTACH}, 1), open('/proc/1/mem', 'r+'), open('/proc/1/environ', 'r'))`
      expect(await runScript(sandbox, command)).toMatchObject({
        stdout: `${-EPERM} EACCES EACCES\n`,
        stderr: '',
      })
      const inside = processesIn(bench.dataDir)
      expect(inside.length).toBeGreaterThan(0)
      expect(inside.filter(isStopped)).toEqual([])
    })

    test('takes no signal of a command: it can be neither stopped nor ended, whatever thread is named', async () => {
      await using bench = new Bench('bubblewrap')
      const sandbox = await bench.start()
      const attempts =
        'for id in 1 $(ls /proc/1/task); do for name in STOP KILL TSTP TTIN TTOU; do kill -$name $id; done; done'
      expect((await run(sandbox, `${attempts}; true`)).exitCode).toBe(0)
      expect(await run(sandbox, 'echo $PPID', { timeoutMs: 2_000 })).toMatchObject({
        stdout: '1\n',
        timedOut: false,
      })
    })

    test('outlives every signal that a command sends, and commands have the default actions', async () => {
      await using bench = new Bench('bubblewrap')
      const sandbox = await bench.start()
      // Right after the start of a command the first thread blocks signals.
      for (let round = 0; round < 5; round += 1) {
        const attempts = 'for n in $(seq 64); do kill -$n 1; done; grep SigIgn /proc/self/status'
        expect(await run(sandbox, attempts)).toMatchObject({
          exitCode: 0,
          stdout: 'SigIgn:\t0000000000000000\n',
        })
      }
    })

    test('does not let a command outlive kill -9 of berth, whatever it has stopped', async () => {
      await using bench = new Bench('bubblewrap')
      const program = [process.execPath, join(import.meta.dir, 'conformance/host.ts'), 'bubblewrap']
      const command = inScript('/workspace', OUTLIVE, 'env -i HOME=/workspace SANDBOXD=$PPID')
      const host = Bun.spawn([...program, bench.dataDir, command], { stdio: ['ignore', 'ignore', 'inherit'] })
      const handle = { kind: 'local', folder: 'servers/srv_host' }
      const beats = async (): Promise<string> => {
        const { stdout } = Bun.spawnSync(['cat', join(bench.dataDir, 'servers/srv_host/workspace/alive')])
        return stdout.toString()
      }
      await until('it counts', async () => (await beats()).length > 0)
      host.kill('SIGKILL')
      await host.exited
      await until('nothing lives on', () => processesIn(bench.dataDir).length === 0, 3000)
      const last = await beats()
      const again = await bench.startAgain('srv_host', handle)
      await Bun.sleep(200)
      expect((await run(again, 'cat alive; ls /proc | grep -c "^[0-9]"')).stdout).toStartWith(last)
      expect(await beats()).toBe(last)
    })

    test('moves and links files between directories as ever', async () => {
      await using bench = new Bench('bubblewrap')
      const command = 'mkdir a b && echo x > a/f && mv -n a/f b/f && ln b/f a/g && mv a c && cat c/g'
      const script = `
        import { mkdirSync, renameSync, writeFileSync } from 'node:fs'
        mkdirSync('x'); mkdirSync('y'); writeFileSync('x/f', ''); renameSync('x/f', 'y/f'); renameSync('y', 'x/y')
        console.log('moved')`
      const sandbox = await bench.start()
      expect((await run(sandbox, command)).stdout).toStartWith('x\n')
      expect((await runScript(sandbox, script)).stdout).toBe('moved\n')
    })
  })

  test('an inner bwrap whose outer one was killed before it was set up ends with the server’s start', async () => {
    await using bench = new Bench('bubblewrap')
    using halted = haltedBwrap(bench.dataDir)
    const driver = driverOn('bubblewrap', bench.dataDir, `${halted.dir}:${TEST_PATH}`)
    const starting = driver.start('srv_a', await driver.create('srv_a'), LIMITS)
    starting.catch(() => {})
    await until('both processes of bwrap', () => halted.processes().length === 2)
    const [outer = 0] = halted.processes()
    process.kill(outer, 'SIGKILL')
    expect(starting).rejects.toThrow(ComputeError)
    await starting.catch(() => {})
    expect(halted.processes()).toEqual([])
  })

  test('an inner bwrap whose berth was killed before it was set up is ended by the next start', async () => {
    await using bench = new Bench('bubblewrap')
    using halted = haltedBwrap(bench.dataDir)
    const args = ['bubblewrap', bench.dataDir, 'true', `${halted.dir}:${TEST_PATH}`]
    const host = Bun.spawn([process.execPath, join(import.meta.dir, 'conformance/host.ts'), ...args], {
      stdio: ['ignore', 'ignore', 'inherit'],
    })
    await until('both processes of bwrap', () => halted.processes().length === 2)
    const [outer = 0, inner = 0] = halted.processes()
    host.kill('SIGKILL')
    await host.exited
    await until('the outer process to be gone', () => readProcess(outer) === null)
    expect(halted.processes()).toEqual([inner])
    await driverOn('bubblewrap', bench.dataDir)
      .takeStock([{ kind: 'local', folder: 'servers/srv_host' }], [])
      .end()
    expect(halted.processes()).toEqual([])
  })

  test('what outlived its berth without a marker is ended by the next start, with its sandbox', async () => {
    await using bench = new Bench('bubblewrap')
    const handle = await bench.driver.create('srv_a')
    const workspace = join(bench.dataDir, 'servers/srv_a/workspace')
    const survivor = startSurvivor(workspace)
    try {
      await until('both processes inside to run', () => processesIn(bench.dataDir).length === 2)
      await driverOn('bubblewrap', bench.dataDir).takeStock([handle], []).end()
      expect(processesIn(bench.dataDir)).toEqual([])
    } finally {
      survivor.kill('SIGKILL')
      await survivor.exited
    }
  })
}

/** The processes that have a workspace of a data folder mounted. */
function processesIn(dataDir: string): number[] {
  const servers = ` ${pathInFileSystem(dataDir)}/servers/`
  return listProcesses()
    .map(({ pid }) => pid)
    .filter((pid) => mountsOf(pid).some((line) => line.includes(servers) && line.includes(' /workspace ')))
}

function mountsOf(pid: number): string[] {
  try {
    return readFileSync(`/proc/${pid}/mountinfo`, 'latin1').split('\n')
  } catch {
    return []
  }
}
