/** The relay's Worker, which ends without a word on request: `world.ts` uses it. */
import '../../../src/compute/local/network/outbound/relay-worker.ts'

new BroadcastChannel('end of the relay').onmessage = () => process.exit(1)
