import { InvalidArgumentError } from 'commander'
import { UsageError } from '../../errors.ts'
import type { ResponseOf } from '../../route-client/client.ts'
import { parseWithLoss } from '../../runtime/validation/json-faults.ts'
import type { ValidationError } from '../../runtime/validation/validation-error.ts'
import { call, factSheet, type Noun, rows } from '../command.ts'
import { type NameWords, namedBy } from '../names.ts'
import { type OptionsOf, parsed, textOption } from '../options.ts'
import { facts } from '../output.ts'
import type { Column } from '../table.ts'

type Account = ResponseOf<'control.accounts.list'>['accounts'][number]

const COLUMNS: readonly Column<Account>[] = [
  { heading: 'ID', cell: ({ id }) => id },
  { heading: 'LABEL', cell: ({ label }) => label, elastic: true },
  { heading: 'SERVERS', cell: ({ servers }) => String(servers), right: true },
  { heading: 'CREDITS USED', cell: ({ credits_used }) => credits(credits_used), right: true },
  { heading: 'BUDGET', cell: ({ budget_cap }) => credits(budget_cap), right: true },
  { heading: 'CREATED', cell: ({ created_at }) => created_at, minor: 1 },
]

const accountFacts = (account: Account): [string, string][] => [
  ['ID', account.id],
  ['Label', account.label],
  ['Servers', `${account.servers} of ${account.plan.servers}`],
  ['Tiers', account.plan.tiers.join(', ')],
  ['Credits', `${credits(account.credits_used)} of ${credits(account.budget_cap)} in ${account.month}`],
  ['Created', account.created_at],
]

const credits = (amount: number): string => String(Number(amount.toFixed(3)))

const plan = {
  label: textOption('TEXT', 'what it is for'),
  plan: parsed('JSON', 'fields of its plan, or "default"', (given) =>
    given === 'default' ? given : jsonObject(given),
  ),
  budgetCap: parsed('CREDITS', 'credits a month, or "default"', (given) =>
    given === 'default' ? given : creditsOf(given),
  ),
}

const updates = {
  ...plan,
  limits: parsed('JSON', 'fields of the plan to change; the others stay', jsonObject),
  creditsUsed: parsed('CREDITS', 'what it has used in this month', creditsOf),
}

function jsonObject(given: string): object {
  let loss: ValidationError | null = null
  try {
    const parsed = parseWithLoss(given)
    loss = parsed?.loss ?? null
    const value = parsed?.value
    if (loss === null && typeof value === 'object' && value !== null && !Array.isArray(value)) return value
  } catch {
    // Reported below, as any other value.
  }
  if (loss !== null) throw new InvalidArgumentError(loss.sentence())
  throw new InvalidArgumentError('Expected a JSON object such as \'{"servers":1}\'.')
}

function creditsOf(given: string): number {
  if (/^\d+(\.\d+)?$/.test(given)) return Number(given)
  throw new InvalidArgumentError('Expected a number of credits, such as 12.5.')
}

/** Returns the fields of a request. The API takes null for the instance's default. */
const fieldsOf = ({ label, plan, limits, budgetCap, creditsUsed }: OptionsOf<typeof updates>) => ({
  label,
  plan: nullForDefault(plan),
  limits,
  budget_cap: nullForDefault(budgetCap),
  credits_used: creditsUsed,
})

const nullForDefault = <Value>(value: Value | 'default') => (value === 'default' ? null : value)

const WORDS: NameWords = {
  one: 'account',
  by: ['label'],
  listedBy: 'berth accounts',
  none: 'Make one with "berth accounts create".',
}

/** `berth accounts` */
export const accountsNoun: Noun = {
  name: 'accounts',
  summary: 'accounts with a plan, a budget and a key each',
  description:
    'Makes and changes accounts, so that tests do not meet. Plain "berth accounts" lists them with what they use.',
  names: [
    {
      placeholder: 'ACCOUNT',
      words: WORDS,
      list: namedBy(
        'label',
        async (client, signal) => (await client.call('control.accounts.list', { signal })).accounts,
      ),
    },
  ],
  commands: [
    call('control.accounts.list', {
      usage: 'list',
      description: 'list all accounts with what they use, newest first',
      show: rows('accounts', COLUMNS),
    }),
    call('control.accounts.create', {
      usage: 'create',
      description: 'make an account and print its key, this once',
      options: plan,
      request: (_, options) => ({ body: fieldsOf(options) }),
      show: ({ id, api_key }, { out }) =>
        `${facts(out, [
          ['ID', id],
          ['API key', api_key],
        ])}
Commands take the key from BERTH_API_KEY. Keep it: only /access in the browser shows it again
(berth open --account ACCOUNT; without a browser here, with --print).
`,
    }),
    call('control.accounts.update', {
      usage: 'update <ACCOUNT>',
      description: 'change its plan, its budget or what it has used',
      options: updates,
      help: `
Examples:
  berth accounts update acct_… --limits '{"servers":1}'  all else as before
  berth accounts update acct_… --credits-used 999        near the cap of 1000
  berth accounts update acct_… --plan default --budget-cap default
`,
      request: async ([named], options, { idOf }) => {
        const body = fieldsOf(options)
        if (Object.values(body).every((value) => value === undefined))
          throw new UsageError(
            'Say what to change: --label, --plan, --limits, --budget-cap or --credits-used.',
          )
        return { params: { accountId: await idOf('ACCOUNT', named) }, body }
      },
      show: factSheet(accountFacts),
    }),
    call('control.accounts.delete', {
      usage: 'delete <ACCOUNT>',
      description: 'remove an account with everything in it',
      request: async ([named], _, { idOf }) => ({ params: { accountId: await idOf('ACCOUNT', named) } }),
      show: ({ id }) => `Deleted ${id}.\n`,
      loss: async ({ args: [named], idOf }) =>
        `The account ${await idOf('ACCOUNT', named)} is deleted with all its servers, projects, tasks and keys.`,
    }),
  ],
}
