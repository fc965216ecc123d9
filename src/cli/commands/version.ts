import type { Command } from 'commander'
import { printJson, type Session } from '../session.ts'
import { versionInfo } from '../version.ts'

/** Adds `version`. */
export function registerVersion(program: Command, session: Session): void {
  program
    .command('version')
    .description('Prints the version (also "berth --version").')
    .summary('print the version')
    .option('--json', 'version, bun, platform and commit as JSON')
    .action((options: { json?: boolean }) => {
      const info = versionInfo()
      if (options.json) return printJson(session, info)
      const commit = info.commit ? `, commit ${info.commit}` : ''
      return session.terminal.stdout.write(
        `berth ${info.version} (Bun ${info.bun}, ${info.platform}${commit})\n`,
      )
    })
}
