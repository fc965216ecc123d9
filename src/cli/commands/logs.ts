import { UsageError } from '../../errors.ts'
import type { ResponseOf } from '../../route-client/client.ts'
import { action, jsonLines, rows } from '../command.ts'
import { untilInterrupted } from '../interrupt.ts'
import { flag, textOption, wholeNumber } from '../options.ts'
import { count } from '../output.ts'
import { connectionReporter } from '../reconnect.ts'
import { type FollowedRequest, followRequests, hasSeveralAccounts } from '../requests/follow.ts'
import { requestText } from '../requests/text.ts'
import type { Column } from '../table.ts'

/** The prefix of the ids of requests. */
const REQUEST_PREFIX = 'req_'

/** Default number of requests to list. @bound reader */
const DEFAULT_LIMIT = 100

const ERROR_COLUMNS: readonly Column<ResponseOf<'control.requests.errors'>['errors'][number]>[] = [
  { heading: 'COUNT', cell: ({ count }) => String(count), right: true },
  {
    heading: 'OPERATION',
    cell: ({ operation, method }) => operation ?? `${method}, a path that leads nowhere`,
  },
  { heading: 'STATUS', cell: ({ status }) => String(status) },
  { heading: 'ERROR', cell: ({ code }) => code ?? '' },
  { heading: 'LAST', cell: ({ last_at }) => last_at, minor: 1 },
  { heading: 'REQUEST', cell: ({ last_id }) => last_id },
]

/** `berth logs` */
export const logs = action({
  usage: 'logs [REQUEST]',
  operations: ['control.requests.list', 'control.requests.get', 'control.requests.errors'],
  summary: 'the requests to the API, and what nearly was right',
  description:
    'Prints the requests to the API, the latest last, with fields that nothing read and paths that lead nowhere below them. Prints one of them with its headers and bodies if its id is given. Secrets are masked.',
  arguments: { REQUEST: { description: 'the id of one request, such as the x-request-id of its response' } },
  access: 'control',
  json: jsonLines('request'),
  options: {
    follow: flag('continue with new ones, until Ctrl-C', { short: 'f' }),
    bodies: flag('with the bodies of requests and responses'),
    headers: flag('with their headers'),
    all: flag("with those of berth's own commands"),
    nearMisses: flag('only requests of which something was not read or led nowhere'),
    method: textOption('METHOD', 'those of one method'),
    path: textOption('PATTERN', 'those of a path; * matches anything'),
    status: textOption('STATUS', 'those with a status, or 4xx for all of its hundred'),
    operation: textOption('OPERATION', 'those of one operation'),
    account: textOption('ACCOUNT', 'those of one account'),
    fault: textOption('FAULT', 'those that a fault applied to'),
    limit: wholeNumber('N', `how many at most, the latest (default ${DEFAULT_LIMIT})`, { least: 1 }),
    errors: flag('failed requests instead, grouped by operation and code'),
    clear: flag('forget all requests instead'),
  },
  help: `
Examples:
  berth logs -f                          every request as it is made
  berth logs --status 4xx --bodies       what was refused, with what was sent
  berth logs --fault flt_… --headers     what a fault applied to, with headers
  berth logs --near-misses               what a client sent that nothing read
  berth logs --path '/servers/*' --json  for programs, one line each
  berth logs --errors                    what fails, how often, and when last
  berth logs req_…                       one request, with headers and bodies
`,
  async run({ session: { context }, args: [requestId], options, connect, reconnect, idOf, print }) {
    const { bodies = false, headers = false, limit } = options
    if (requestId !== undefined) {
      if (!requestId.startsWith(REQUEST_PREFIX))
        throw new UsageError(
          `${JSON.stringify(requestId)} is not the id of a request, which begins with ${REQUEST_PREFIX}. "berth logs" prints the requests to the API. What an app prints: berth projects logs PROJECT, berth deployments logs SERVER`,
        )
      const client = await connect()
      const entry = await client.call('control.requests.get', { params: { requestId } })
      const accounts = options.json ? false : await hasSeveralAccounts(client)
      return print(entry, (_, { out }) => requestText(out, entry, { bodies: true, headers: true, accounts }))
    }
    if (options.clear) {
      const client = await connect()
      const response = await client.call('control.requests.clear')
      await print(response, ({ deleted }) => `Forgot ${count(deleted, 'request')}.\n`)
      return 0
    }
    if (options.errors) {
      const client = await connect()
      const query = {
        account_id: await idOf('ACCOUNT', options.account),
        own: options.all ? undefined : ('false' as const),
      }
      await print(
        await client.call('control.requests.errors', { query }),
        rows('errors', ERROR_COLUMNS, 'No request has failed.\n'),
      )
      return 0
    }
    const { method, path, status, operation, nearMisses } = options
    const query = {
      ...{ method, path, status, operation, fault_id: options.fault },
      account_id: await idOf('ACCOUNT', options.account),
      own: options.all ? undefined : ('false' as const),
      near_misses: nearMisses ? ('true' as const) : undefined,
      bodies: bodies || options.json ? undefined : ('false' as const),
    }
    const accounts = options.json ? false : await hasSeveralAccounts(await connect())
    const show = (entry: FollowedRequest): Promise<number> =>
      print(entry, (_, { out }) => requestText(out, entry, { bodies, headers, accounts }))
    if (options.follow) {
      const onConnectionChange = connectionReporter(context.stderr)
      return untilInterrupted(async (signal) => {
        let left = limit ?? Number.POSITIVE_INFINITY
        for await (const entry of followRequests({ connect: reconnect, query, signal, onConnectionChange })) {
          await show(entry)
          left -= 1
          if (left === 0) break
        }
        return 0
      })
    }
    const client = await connect()
    const { requests } = await client.call('control.requests.list', {
      query: { ...query, limit: limit ?? DEFAULT_LIMIT },
    })
    if (requests.length === 0 && !options.json)
      await context.stdout.write(
        'No requests that fit. "berth logs -f" shows them as they come. What an app prints: "berth projects logs", and "berth deployments logs" after "berth deploy".\n',
      )
    for (const entry of requests.toReversed()) await show(entry)
    return 0
  },
})
