import type { Command } from 'commander'
import { UsageError } from '../../errors.ts'
import { isReturnPath } from '../../http/return-path.ts'
import type { SignInLink } from '../../testing/api/sign-in-links.ts'
import type { ConnectionOptions } from '../instance.ts'
import { connectControl, printJson, type Session, withControl, withJson } from '../session.ts'

interface Options extends ConnectionOptions {
  account?: string
  page?: string
  print?: boolean
  json?: boolean
}

const MORE = `
The link signs in the browser that opens it first, within five minutes. Whoever has it can sign in with it.

Examples:
  berth open                        the pages of the running instance
  berth open --page /docs           another of its pages
  berth open --print                the link alone, for a browser elsewhere
`

/** Adds `open`. */
export function registerOpen(program: Command, session: Session): void {
  const { stdout, stderr } = session.terminal
  const command = program
    .command('open')
    .summary('open the pages of an instance in the browser, signed in')
    .description('Makes a link that signs a browser in, once, and opens it. Without a browser it is printed.')
    .option('--account <ACCOUNT>', 'whom to sign in (default: the first account)')
    .option('--page <PATH>', 'the page to open (default /access)')
    .option('--print', 'print the link, and open nothing')
    .addHelpText('after', MORE)
  withControl(withJson(command)).action(async (options: Options) => {
    const { account, page, print, json } = options
    if (page !== undefined && !isReturnPath(page))
      throw new UsageError(
        `Expected a path of the instance, such as /docs, in --page, got ${JSON.stringify(page)}.`,
      )
    const client = await connectControl(session, options)
    const body = { account_id: account, return_to: page }
    const link = await client.request<SignInLink>('POST', '/_berth/sign-in-links', { body })
    if (json) return printJson(session, link)
    if (!print) {
      const { openInBrowser } = await import('../browser.ts')
      if (await openInBrowser(link.url, session.terminal))
        return stdout.write(`Opened ${new URL(link.url).origin} in the browser.\n`)
      await stderr.write('berth: no browser was found here. Open this within five minutes:\n')
    }
    await stdout.write(`${link.url}\n`)
  })
}
