import { action } from '../command.ts'
import { versionInfo } from '../version.ts'

/** `berth version` */
export const version = action({
  usage: 'version',
  summary: 'print the version',
  description: 'Prints the version (also "berth --version").',
  access: 'none',
  json: 'version, bun, platform and commit as JSON',
  run: ({ print }) =>
    print(versionInfo(), ({ version, bun, platform, commit }) => {
      const from = commit ? `, commit ${commit}` : ''
      return `berth ${version} (Bun ${bun}, ${platform}${from})\n`
    }),
})
