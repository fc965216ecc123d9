import { Elysia, type Static, status, t } from 'elysia'
import { DeleteResult, listOf } from '../../contract/model.ts'
import { operation } from '../../contract/operation.ts'
import { Account, BudgetCap, CreditsUsed, PlanOverrides } from '../../resources/accounts/model.ts'
import { unchangeable } from '../../runtime/validation/validate.ts'
import type { ControlParts } from './parts.ts'

const CreatedAccount = t.Object(
  {
    id: t.String(),
    api_key: t.String({ description: 'A key that reaches the whole account, shown this once.' }),
  },
  { $id: 'CreatedAccount' },
)
export type CreatedAccount = Static<typeof CreatedAccount>

const settings = {
  label: t.Optional(t.String({ maxLength: 100 })),
  plan: t.Optional(t.Nullable(PlanOverrides)),
  budget_cap: t.Optional(
    t.Nullable(BudgetCap, { description: "Credits a month; null is the plan's `monthly_cap`." }),
  ),
}

/** What the operations' descriptions say of plans. */
const PLANS =
  '`plan` sets limits of this account alone. Fields that it leaves out are those of the instance; null means all of them.'

const AccountCreate = t.Object(settings, { $id: 'AccountCreate', additionalProperties: false })

const AccountUpdate = unchangeable(
  t.Object(
    { ...settings, limits: t.Optional(PlanOverrides), credits_used: t.Optional(CreditsUsed) },
    { $id: 'AccountUpdate', additionalProperties: false },
  ),
  ['id', 'created_at', 'month', 'servers'],
)

/** Serves `/_berth/accounts`: accounts with a plan and a budget each, so parallel tests do not interfere. */
export const accountsRoutes = ({ access, accounts, services: { faults } }: ControlParts) =>
  new Elysia({ prefix: '/_berth/accounts' })
    .use(access)
    .get(
      '',
      () => ({ accounts: accounts.list() }),
      operation('control.accounts.list', {
        access: 'admin',
        summary: 'List accounts with what they use, newest first',
        description: 'Each has its effective plan and what it has used this month.',
        success: { 200: listOf('accounts', Account) },
      }),
    )
    .post(
      '',
      ({ body }) => status(201, accounts.create(body ?? {})),
      operation(
        'control.accounts.create',
        {
          access: 'admin',
          summary: 'Make an account and its first key',
          description: PLANS,
          secret: true,
          success: { 201: CreatedAccount },
        },
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
          description: `${PLANS} \`limits\` changes some fields, and the others stay.`,
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
        faults.removeForAccount(params.accountId)
        return { id: params.accountId, deleted: true as const }
      },
      operation('control.accounts.delete', {
        access: 'admin',
        summary: 'Remove an account with everything in it',
        description:
          'Ends its processes and removes its directories, keys and faults. The first account cannot be deleted.',
        success: { 200: DeleteResult },
        errors: [400, 404],
      }),
    )
