// A berth that runs a command on a server of an engine until it is killed: SOCKET DATADIR attach|exec COMMAND.

import { LIMITS } from '../compute/bench.ts'
import { engineDriver } from '../support/engines/engine-rig.ts'

const [, , socket = '', dataDir = '', carrier, command = ''] = process.argv
const driver = engineDriver(socket, dataDir, { isLocal: carrier === 'attach', leaseMs: 3_000 })
const sandbox = await driver.start('srv_host', await driver.create('srv_host'), LIMITS)
await sandbox.exec({ command, timeoutMs: null, onOutput() {} }).pid
console.log('runs')
await sandbox.exited
