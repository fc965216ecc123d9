import { UsageError } from '../../errors.ts'
import { action } from '../command.ts'
import type { Finding } from '../doctor.ts'
import { choiceOption, flag, textOption } from '../options.ts'
import { paint, printable, type Style } from '../output.ts'
import type { OutputStream } from '../process-context.ts'
import { showWhile } from '../status-line.ts'

const SIGNS: Record<Finding['status'], [sign: string, style: Style]> = {
  ok: ['✓', 'green'],
  absent: ['–', 'yellow'],
  failed: ['✗', 'red'],
}

/** `berth doctor` */
export const doctor = action({
  usage: 'doctor',
  summary: 'what this machine offers, and what is missing',
  description: 'Tries what berth needs on this machine and says what is missing, with the remedy.',
  access: 'none',
  json: 'print the findings as JSON, for programs',
  options: {
    data: textOption('DIR', 'data directory to look at [BERTH_DATA]'),
    for: choiceOption('COMMAND', 'serve or run, which uses free ports and a temporary directory', [
      'serve',
      'run',
    ]),
    leaks: flag(
      'look for what instances that were killed have left: processes, ports, directories, containers',
    ),
    fix: flag('with --leaks: remove it'),
    fixKept: textOption(
      'ID',
      'with --leaks: remove the directory of a server that the database does not name',
    ),
    compute: choiceOption('KIND', 'what servers run on, as for serve [BERTH_COMPUTE]', [
      'docker',
      'kubernetes',
    ]),
    engine: textOption('ADDRESS', 'the engine, as for serve [BERTH_ENGINE]'),
    yes: flag('with --fix-kept: ask nothing', { short: 'y' }),
  },
  help: `
Its other settings are those of serve, by variables: BERTH_KUBECONFIG, BERTH_SERVER_IMAGE.

Exits with 1 only where berth cannot run as it is configured; with --leaks, where something is left behind.
Files of servers that the database does not name, as after it was lost, are kept: no start and no --fix removes them.
What belongs to an instance that runs is never reported, and neither is anything of other users.
`,
  async run({ session: { context }, options, print }) {
    const { data, leaks, fix, fixKept, yes, json, compute, engine } = options
    if (fixKept !== undefined && !leaks)
      throw new UsageError('--fix-kept belongs to --leaks: berth doctor --leaks --fix-kept ID')
    if (fix && !leaks) throw new UsageError('--fix belongs to --leaks: berth doctor --leaks --fix')
    if (leaks) {
      const { reportLeaks } = await import('../leaks.ts')
      return reportLeaks(context, print, {
        ...{ data, compute, engine, fixKept },
        fix: fix ?? false,
        yes: yes ?? false,
      })
    }
    const { examine } = await import('../doctor.ts')
    const tried = { step: 'look at this machine' }
    const report = await showWhile(
      context.stderr,
      () => tried.step,
      () =>
        examine({ data, compute, engine }, context, {
          purpose: options.for ?? 'serve',
          onStep: (step) => {
            tried.step = step
          },
        }),
    )
    await print(report, ({ version, bun, system, findings }, { out }) => {
      const lines = findings.map((finding) => findingText(out, finding))
      return `berth ${version} (Bun ${bun}, ${system})\n\n${lines.join('')}`
    })
    if (report.ok) return 0
    const failures = report.findings.filter(({ status }) => status === 'failed').map(({ name }) => name)
    if (!json) await context.stderr.write(`berth: cannot run here: ${failures.join(', ')}\n`)
    return 1
  },
})

function findingText(out: OutputStream, { name, status, detail, remedy }: Finding): string {
  const [sign, style] = SIGNS[status]
  const remark = remedy ? `\n${' '.repeat(18)}${paint(out, 'dim', printable(remedy))}` : ''
  return `${paint(out, style, sign)} ${name.padEnd(14)}  ${printable(detail)}${remark}\n`
}
