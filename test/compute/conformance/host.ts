import { ISOLATIONS } from '../../../src/config/config.ts'
import { driverOn, LIMITS } from '../bench.ts'

// A berth of sorts: it starts a server, runs a command on it, and waits to be killed.
const [, , wanted, dataDir, command, path] = process.argv
const name = ISOLATIONS.find((one) => one === wanted)
if (name === undefined || dataDir === undefined || command === undefined) throw new Error('wrong arguments')
const driver = driverOn(name, dataDir, path)
const sandbox = await driver.start('srv_host', await driver.create('srv_host'), LIMITS)
await sandbox.exec({ command, timeoutMs: 600_000, onOutput() {} }).exit
