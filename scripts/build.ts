/** Builds dist/berth. */
import { mkdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { buildExecutable, prepareParts, root } from './packaging/executable.ts'

const target = join(root, 'dist/berth')
mkdirSync(join(root, 'dist'), { recursive: true })
const started = performance.now()
try {
  buildExecutable(await prepareParts(), target)
} catch (error) {
  process.stderr.write(error instanceof Error ? error.message : String(error))
  console.error('The executable could not be built; see the messages above.')
  process.exit(1)
}
const seconds = ((performance.now() - started) / 1000).toFixed(1)
const megabytes = (statSync(target).size / 1e6).toFixed(0)
console.error(`Built dist/berth: ${megabytes} MB in ${seconds} s.`)
