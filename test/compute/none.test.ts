import { expect, test } from 'bun:test'
import { mkdirSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { Bench, driverOn, LIMITS } from './bench.ts'
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
})
