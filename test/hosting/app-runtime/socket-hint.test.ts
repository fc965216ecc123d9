import { expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { AppLog } from '../../../src/hosting/app-runtime/log/log.ts'
import { runStep } from '../../../src/hosting/app-runtime/step.ts'
import { createLogger } from '../../../src/runtime/logger.ts'
import { Masks } from '../../../src/runtime/masks.ts'
import { Bench, LIMITS } from '../../compute/bench.ts'
import { MovedClock } from '../../support/clock.ts'

const isPossible = await (async () => {
  await using bench = new Bench('landlock')
  const { available } = await bench.driver.probe()
  return available
})()

const isRefused = (text: string) => text.includes('--allow-unix-sockets')

test.skipIf(!isPossible)(
  'an app whose Unix socket landlock refuses gets the remedy in its log, once',
  async () => {
    await using bench = new Bench('landlock')
    const handle = await bench.driver.create('srv_hint')
    const sandbox = await bench.driver.start('srv_hint', handle, LIMITS)
    // Since Linux 7.1 it hides the sockets of others instead.
    expect(sandbox.refusesUnixSockets).toBeBoolean()
    const folder = mkdtempSync(join(tmpdir(), 'berth-hint-'))
    const dir = join(folder, 'log')
    const logger = createLogger('error', () => {}, Date.now)
    const log = await AppLog.open({ dir, clock: new MovedClock(), logger, masks: new Masks() })
    try {
      const script = `for (const name of ['a', 'b']) await new Promise((next) =>
      require('net').createServer().on('error', (error) => next(console.log(error.code ?? error.message))).listen('./' + name, next));
      console.log('EAFNOSUPPORT'); console.log('Address family not supported by protocol')`
      const workspace = bench.driver.workspace(handle)
      const step = { owner: { kind: 'project', id: 'p' } as const, sandbox, workspace, cwd: '', env: {}, log }
      await runStep({ ...step, command: `bun -e "${script.replaceAll('\n', ' ')}"`, source: 'build' })
      const lines = (await log.tail(100)).map(({ text }) => text)
      expect(lines.filter(isRefused)).toHaveLength(sandbox.refusesUnixSockets ? 1 : 0)
      expect(lines).toContain('EAFNOSUPPORT')
    } finally {
      await sandbox.stop()
      await log.remove()
      rmSync(folder, { recursive: true })
    }
  },
)
