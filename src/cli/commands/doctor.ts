import type { Command } from 'commander'
import { UsageError } from '../../errors.ts'
import type { Finding } from '../doctor/finding.ts'
import { paint, printable, type Style } from '../output.ts'
import { printJson, type Session } from '../session.ts'
import type { Terminal } from '../terminal.ts'

const SIGNS: Record<Finding['status'], [sign: string, style: Style]> = {
  ok: ['✓', 'green'],
  absent: ['–', 'yellow'],
  failed: ['✗', 'red'],
}

const MORE = `
Exits with 1 only where berth cannot run as it is configured; with --leaks, where something is left behind.
What belongs to an instance that runs is never reported, and neither is anything of other users.
`

interface Options {
  data?: string
  json?: boolean
  leaks?: boolean
  fix?: boolean
}

/** Adds `doctor`. */
export function registerDoctor(program: Command, session: Session): void {
  const { stdout } = session.terminal
  program
    .command('doctor')
    .summary('what this machine offers, and what is missing')
    .description('Tries what berth needs on this machine and says what is missing, with the remedy.')
    .option('--data <DIR>', 'data folder to look at [BERTH_DATA]')
    .option('--leaks', 'look for what instances that were killed have left: processes, ports, folders')
    .option('--fix', 'with --leaks: remove it')
    .option('--json', 'print the findings as JSON, for programs')
    .addHelpText('after', MORE)
    .action(async ({ leaks, fix, ...options }: Options) => {
      if (fix && !leaks) throw new UsageError('--fix belongs to --leaks: berth doctor --leaks --fix')
      if (leaks) {
        const { reportLeaks } = await import('../leaks/report.ts')
        session.exitCode = await reportLeaks(session, { ...options, fix: fix ?? false })
        return
      }
      const { examine } = await import('../doctor/examine.ts')
      const report = await examine(options.data, session.terminal)
      session.exitCode = report.ok ? 0 : 1
      if (options.json) return printJson(session, report)
      await stdout.write(`berth ${report.version} (Bun ${report.bun}, ${report.platform})\n\n`)
      await stdout.write(report.findings.map((finding) => line(stdout, finding)).join(''))
      const failures = report.findings.filter(({ status }) => status === 'failed').map(({ name }) => name)
      if (!report.ok) await session.terminal.stderr.write(`berth: cannot run here: ${failures.join(', ')}\n`)
    })
}

function line(stdout: Terminal['stdout'], { name, status, detail, remedy }: Finding): string {
  const [sign, style] = SIGNS[status]
  const remark = remedy ? `\n${' '.repeat(18)}${paint(stdout, 'dim', printable(remedy))}` : ''
  return `${paint(stdout, style, sign)} ${name.padEnd(14)}  ${printable(detail)}${remark}\n`
}
