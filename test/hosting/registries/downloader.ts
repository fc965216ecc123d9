/** A berth's package cache in a process of its own, which downloads a tarball: DATA_FOLDER REGISTRY. */
import { Packages } from '../../../src/hosting/registries/packages.ts'
import { createLogger } from '../../../src/runtime/logger.ts'
import { systemRandom } from '../../../src/runtime/random.ts'
import { NO_PATHS, NO_SETTINGS } from './world.ts'

const [dataDir = '', registry = ''] = process.argv.slice(2)
const logger = createLogger('warn', (line) => process.stderr.write(line), Date.now)
const packages = new Packages({
  dataDir,
  registry,
  machine: NO_SETTINGS,
  random: systemRandom,
  logger,
  now: Date.now,
})
const workspace = { read: () => Promise.reject(new Error('nothing')) }
const env = await packages.environment('srv_a', { paths: NO_PATHS, directory: '', workspace })
const headers = { authorization: `Bearer ${env.BERTH_PACKAGES_TOKEN}` }
await (await fetch(`${env.BERTH_PACKAGES_URL}tiny/-/tiny-1.0.0.tgz`, { headers })).bytes()
