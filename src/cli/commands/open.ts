import { UsageError } from '../../errors.ts'
import { isReturnPath } from '../../http/return-path.ts'
import { action } from '../command.ts'
import { flag, text } from '../options.ts'

/** `berth open` */
export const open = action({
  usage: 'open',
  summary: 'open the pages of an instance in the browser, signed in',
  description: 'Makes a link that signs a browser in, once, and opens it. Without a browser it is printed.',
  access: 'control',
  options: {
    account: text('ACCOUNT', 'whom to sign in (default: the first account)'),
    page: text('PATH', 'the page to open (default /, the dashboard)'),
    print: flag('print the link, and open nothing'),
  },
  help: `
The link signs in the browser that opens it first, within five minutes. Whoever has it can sign in with it.

Examples:
  berth open                        the pages of the running instance
  berth open --page /docs           another of its pages
  berth open --print                the link alone, for a browser elsewhere
`,
  async run({ session: { context }, options: { account, page, print: onlyPrint }, connect, idOf, print }) {
    if (page !== undefined && !isReturnPath(page))
      throw new UsageError(
        `Expected a path of the instance, such as /docs, in --page, got ${JSON.stringify(page)}.`,
      )
    const client = await connect()
    const body = { account_id: await idOf('ACCOUNT', account), return_to: page }
    await print(await client.call('control.signInLinks.create', { body }), async ({ url }) => {
      if (onlyPrint) return `${url}\n`
      const { openInBrowser } = await import('../browser.ts')
      if (await openInBrowser(url, context))
        return `Opened ${new URL(url).origin} in the browser. If none appears: berth open --print\n`
      await context.stderr.write('berth: no browser was found here. Open this within five minutes:\n')
      return `${url}\n`
    })
  },
})
