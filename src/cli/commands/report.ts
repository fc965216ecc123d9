import { join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { action } from '../command.ts'
import { CommandError } from '../errors.ts'

/** `berth report` */
export const reportCommand = action({
  usage: 'report [DIR]',
  summary: 'open the report of a run in the browser',
  description:
    'Opens the page of a report that "berth run" has written: that of DIR, or the last one. Without a browser its path is printed.',
  access: 'none',
  json: null,
  help: `
Without DIR: berth-report in the working directory, else the newest report of a failed run.
The page of a run that was killed is made of what it has recorded.

Examples:
  berth report
  berth report berth-report
`,
  async run({ session: { context }, args: [given] }) {
    const { findReport, isFinished } = await import('../report/find.ts')
    const directory = given === undefined ? findReport(context) : resolve(context.cwd, given)
    if (directory === null)
      throw new CommandError('There is no report. "berth run --report DIR -- CMD" writes one.')
    const { REPORT, isReport } = await import('../../testing/report/directory.ts')
    if (!isReport(directory))
      throw new CommandError(
        `${directory} is not a report of berth. "berth run --report DIR -- CMD" writes one.`,
      )
    if (!isFinished(directory)) {
      const { finishKilled } = await import('../report/finish.ts')
      await finishKilled(directory)
    }
    const page = join(directory, REPORT.page)
    const { openInBrowser } = await import('../browser.ts')
    const isOpened = await openInBrowser(pathToFileURL(page).href, context)
    await context.stdout.write(isOpened ? `Opened ${page} in the browser.\n` : `${page}\n`)
  },
})
