import { readFileSync } from 'node:fs'
import { join } from 'node:path'

/** The directory of the repository. */
export const root = join(import.meta.dir, '../..')

/** The release under test, which `scripts/test --release` builds. */
export const release = process.env.BERTH_TEST_RELEASE ?? join(root, 'dist/release')

export const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
export const owner = readFileSync(join(root, 'scripts/packaging/owner'), 'utf8').trim()

/**
 * Returns the commands of the README's block for a tool, such as `npm`, with the owner and the version of this release.
 *
 * @throws if the README has no such block
 */
export function readmeCommands(tool: string): string {
  const block = new RegExp(`^\`\`\`sh ${tool}\\n([\\s\\S]*?)^\`\`\``, 'm').exec(readme)?.[1]
  if (block === undefined) throw new Error(`The README has no commands for ${tool}.`)
  return block.replaceAll('OWNER', owner).replaceAll('VERSION', version)
}

const readme = readFileSync(join(root, 'README.md'), 'utf8')
