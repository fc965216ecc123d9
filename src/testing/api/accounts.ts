import { Elysia, type Static, status, t } from 'elysia'
import { DeleteResult } from '../../contract/model.ts'
import { operation } from '../../contract/operation.ts'
import { oneOf } from '../../contract/schema.ts'
import type { AccountsService } from '../../resources/accounts/service.ts'
import type { FaultStore } from '../faults/store.ts'
import type { ControlAccess } from './access.ts'

const PerTier = t.Object({ small: t.Number(), medium: t.Number(), large: t.Number() }, { $id: 'PerTier' })

const Plan = t.Object(
  {
    tiers: t.Array(oneOf(['small', 'medium', 'large'])),
    servers: t.Number({ description: 'Servers at a time.' }),
    projects: PerTier,
    storage_gb: PerTier,
    cpus: PerTier,
    memory_gib: PerTier,
    credits_per_hour: PerTier,
    credits_per_task: t.Number(),
    credits_per_build: t.Number(),
    monthly_cap: t.Number({ description: 'Credits a month, where the account has no budget of its own.' }),
  },
  { $id: 'Plan' },
)

const Account = t.Object(
  {
    id: t.String(),
    label: t.String(),
    created_at: t.String({ format: 'date-time' }),
    plan: Plan,
    budget_cap: t.Number({ description: 'Credits that it may use in a month.' }),
    credits_used: t.Number({ description: 'Credits used in this month.' }),
    month: t.String({ description: 'The month that they count for, such as 2030-01.' }),
    servers: t.Number({ description: 'How many it has.' }),
  },
  { $id: 'Account' },
)
export type Account = Static<typeof Account>

const CreatedAccount = t.Object(
  {
    id: t.String(),
    api_key: t.String({ description: 'A key that reaches the whole account, shown this once.' }),
  },
  { $id: 'CreatedAccount' },
)
export type CreatedAccount = Static<typeof CreatedAccount>

/** Plan and credits are read by the service, which says more exactly what it expected. */
const wishes = {
  label: t.Optional(t.String({ maxLength: 100 })),
  plan: t.Optional(
    t.Unknown({
      type: ['object', 'null'],
      description:
        'Fields of a plan in place of all that was said of this one; those left out are as for the whole instance.',
    }),
  ),
  budget_cap: t.Optional(
    t.Unknown({
      type: ['number', 'null'],
      description: "Credits a month; null is the plan's `monthly_cap`.",
    }),
  ),
}

const AccountCreate = t.Object(wishes, { $id: 'AccountCreate', additionalProperties: false })

const AccountUpdate = t.Object(
  {
    ...wishes,
    limits: t.Optional(
      t.Unknown({ type: 'object', description: 'Fields of the plan to change; the others stay.' }),
    ),
    credits_used: t.Optional(t.Unknown({ type: 'number', description: 'What it has used in this month.' })),
  },
  { $id: 'AccountUpdate', additionalProperties: false },
)

/** `/_berth/accounts`: accounts with a plan and a budget each, so that parallel tests do not meet. */
export const accountsRoutes = (access: ControlAccess, accounts: AccountsService, faults: FaultStore) =>
  new Elysia({ prefix: '/_berth/accounts' })
    .use(access)
    .get(
      '',
      () => ({ accounts: accounts.list() }),
      operation('control.accounts.list', {
        access: 'admin',
        summary: 'List accounts with what they use, newest first',
        success: { 200: t.Object({ accounts: t.Array(Account) }) },
      }),
    )
    .post(
      '',
      ({ body }) => status(201, accounts.create(body ?? {})),
      operation(
        'control.accounts.create',
        { access: 'admin', summary: 'Make an account and its first key', success: { 201: CreatedAccount } },
        { body: t.Optional(AccountCreate) },
      ),
    )
    .patch(
      '/:accountId',
      ({ params, body }) => accounts.update(params.accountId, body),
      operation(
        'control.accounts.update',
        {
          access: 'admin',
          summary: 'Change plan, budget or use of an account',
          success: { 200: Account },
          errors: [404],
        },
        { body: AccountUpdate },
      ),
    )
    .delete(
      '/:accountId',
      async ({ params }) => {
        await accounts.delete(params.accountId)
        faults.removeOf(params.accountId)
        return { id: params.accountId, deleted: true as const }
      },
      operation('control.accounts.delete', {
        access: 'admin',
        summary: 'Remove an account with everything in it',
        description:
          'Its processes end, its folders, keys and faults go. The first account cannot be deleted.',
        success: { 200: DeleteResult },
        errors: [400, 404],
      }),
    )
