import { type Command, InvalidArgumentError } from 'commander'
import { UsageError } from '../../errors.ts'
import type { Account, CreatedAccount } from '../../testing/api/accounts.ts'
import type { ConnectionOptions } from '../instance.ts'
import { type Column, facts, table } from '../output.ts'
import { path } from '../path.ts'
import { connectControl, printJson, type Session, withControl, withJson } from '../session.ts'

interface Options extends ConnectionOptions {
  json?: boolean
  label?: string
  plan?: object | 'default'
  limits?: object
  budgetCap?: number | 'default'
  creditsUsed?: number
}

const COLUMNS: Column<Account>[] = [
  { heading: 'ID', cell: ({ id }) => id },
  { heading: 'LABEL', cell: ({ label }) => label },
  { heading: 'SERVERS', cell: ({ servers }) => String(servers), right: true },
  { heading: 'CREDITS USED', cell: ({ credits_used }) => credits(credits_used), right: true },
  { heading: 'BUDGET', cell: ({ budget_cap }) => credits(budget_cap), right: true },
  { heading: 'CREATED', cell: ({ created_at }) => created_at },
]

const MORE_UPDATE = `
Examples:
  berth accounts update acct_… --limits '{"servers":1}'  all else as before
  berth accounts update acct_… --credits-used 999        near the cap of 1000
  berth accounts update acct_… --plan default --budget-cap default
`

/** Adds `accounts` and what can be done with them. */
export function registerAccounts(program: Command, session: Session): void {
  const { stdout } = session.terminal
  const accounts = program
    .command('accounts')
    .helpCommand(false)
    .summary('accounts with a plan, a budget and a key each')
    .description(
      'Makes and changes accounts, so that tests do not meet. Plain "berth accounts" lists them with what they use.',
    )
  const add = (usage: string, description: string) =>
    withControl(withJson(accounts.command(usage).description(description)))

  add('list', 'list all accounts with what they use, newest first').action(async (options: Options) => {
    const client = await connectControl(session, options)
    const answer = await client.request<{ accounts: Account[] }>('GET', '/_berth/accounts')
    if (options.json) return printJson(session, answer)
    await stdout.write(table(stdout, COLUMNS, answer.accounts))
  })

  withPlan(add('create', 'make an account and print its key, this once')).action(async (options: Options) => {
    const client = await connectControl(session, options)
    const created = await client.request<CreatedAccount>('POST', '/_berth/accounts', {
      body: wishesOf(options),
    })
    if (options.json) return printJson(session, created)
    await stdout.write(
      facts(stdout, [
        ['ID', created.id],
        ['API key', created.api_key],
      ]),
    )
    await stdout.write(
      '\nCommands take the key from BERTH_API_KEY. Keep it: only /access in the browser shows it again\n(berth open --account ACCOUNT).\n',
    )
  })

  withPlan(add('update <ACCOUNT>', 'change its plan, its budget or what it has used'))
    .option('--limits <JSON>', 'fields of the plan to change; the others stay', jsonObject)
    .option('--credits-used <CREDITS>', 'what it has used in this month', creditsOf)
    .addHelpText('after', MORE_UPDATE)
    .action(async (id: string, options: Options) => {
      const changes = wishesOf(options)
      if (Object.keys(changes).length === 0)
        throw new UsageError('Say what to change: --label, --plan, --limits, --budget-cap or --credits-used.')
      const client = await connectControl(session, options)
      const account = await client.request<Account>('PATCH', path`/_berth/accounts/${id}`, { body: changes })
      if (options.json) return printJson(session, account)
      await stdout.write(facts(stdout, details(account)))
    })

  add('delete <ACCOUNT>', 'remove an account with everything in it')
    .alias('rm')
    .action(async (id: string, options: Options) => {
      const client = await connectControl(session, options)
      const answer = await client.request<{ id: string }>('DELETE', path`/_berth/accounts/${id}`)
      if (options.json) return printJson(session, answer)
      await stdout.write(`Deleted ${answer.id}.\n`)
    })
}

const withPlan = (command: Command): Command =>
  command
    .option('--label <TEXT>', 'what it is for')
    .option('--plan <JSON>', 'fields of its plan, or "default"', (given) =>
      given === 'default' ? given : jsonObject(given),
    )
    .option('--budget-cap <CREDITS>', 'credits a month, or "default"', (given) =>
      given === 'default' ? given : creditsOf(given),
    )

const wishesOf = ({ label, plan, limits, budgetCap, creditsUsed }: Options): object =>
  withoutUnset({
    label,
    plan: ownOrNull(plan),
    limits,
    budget_cap: ownOrNull(budgetCap),
    credits_used: creditsUsed,
  })

/** The control API's word for what holds for the whole instance is null, which an option's value cannot be. */
const ownOrNull = <Value>(value: Value | 'default') => (value === 'default' ? null : value)

const withoutUnset = (wishes: Record<string, unknown>): object =>
  Object.fromEntries(Object.entries(wishes).filter(([, value]) => value !== undefined))

function jsonObject(given: string): object {
  try {
    const value: unknown = JSON.parse(given)
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value
  } catch {}
  throw new InvalidArgumentError('Expected a JSON object such as \'{"servers":1}\'.')
}

function creditsOf(given: string): number {
  if (/^\d+(\.\d+)?$/.test(given)) return Number(given)
  throw new InvalidArgumentError('Expected a number of credits, such as 12.5.')
}

const details = (account: Account): [string, string][] => [
  ['ID', account.id],
  ['Label', account.label],
  ['Servers', `${account.servers} of ${account.plan.servers}`],
  ['Tiers', account.plan.tiers.join(', ')],
  ['Credits', `${credits(account.credits_used)} of ${credits(account.budget_cap)} in ${account.month}`],
  ['Created', account.created_at],
]

const credits = (amount: number): string => String(Number(amount.toFixed(3)))
