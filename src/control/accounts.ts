import { Elysia, status, t } from 'elysia'
import type { AccountsService } from '../accounts/service.ts'
import { DeleteResult } from '../http/model.ts'
import { oneOf } from '../http/schema.ts'
import type { ControlAccess } from './access.ts'
import { controlOperation } from './operation.ts'

const PerTier = t.Object({ small: t.Number(), medium: t.Number(), large: t.Number() })

const Plan = t.Object({
  tiers: t.Array(oneOf(['small', 'medium', 'large'])),
  servers: t.Number(),
  projects: PerTier,
  storage_gb: PerTier,
  cpus: PerTier,
  memory_gib: PerTier,
  credits_per_hour: PerTier,
  credits_per_task: t.Number(),
  credits_per_build: t.Number(),
  monthly_cap: t.Number(),
})

const Account = t.Object({
  id: t.String(),
  label: t.String(),
  created_at: t.String({ format: 'date-time' }),
  plan: Plan,
  budget_cap: t.Number(),
  credits_used: t.Number(),
  month: t.String(),
  servers: t.Number(),
})

/** Plan and credits are read by the service, which says more exactly what it expected. */
const wishes = {
  label: t.Optional(t.String({ maxLength: 100 })),
  plan: t.Optional(t.Unknown()),
  budget_cap: t.Optional(t.Unknown()),
}

const AccountCreate = t.Object(wishes, { additionalProperties: false })

const AccountUpdate = t.Object(
  { ...wishes, limits: t.Optional(t.Unknown()), credits_used: t.Optional(t.Unknown()) },
  { additionalProperties: false },
)

/** `/_berth/accounts`: accounts with a plan and a budget each, so that parallel tests do not meet. */
export const accountsRoutes = (access: ControlAccess, accounts: AccountsService) =>
  new Elysia({ prefix: '/_berth/accounts' })
    .use(access)
    .get(
      '',
      () => ({ accounts: accounts.list() }),
      controlOperation('control.accounts.list', {
        summary: 'List accounts with what they use',
        success: { 200: t.Object({ accounts: t.Array(Account) }) },
      }),
    )
    .post(
      '',
      ({ body }) => status(201, accounts.create(body ?? {})),
      controlOperation(
        'control.accounts.create',
        {
          summary: 'Make an account and its first key',
          success: { 201: t.Object({ id: t.String(), api_key: t.String() }) },
        },
        { body: t.Optional(AccountCreate) },
      ),
    )
    .patch(
      '/:accountId',
      ({ params, body }) => accounts.update(params.accountId, body),
      controlOperation(
        'control.accounts.update',
        {
          summary: 'Change plan, budget or use of an account',
          success: { 200: Account },
        },
        { body: AccountUpdate },
      ),
    )
    .delete(
      '/:accountId',
      async ({ params }) => {
        await accounts.delete(params.accountId)
        return { id: params.accountId, deleted: true as const }
      },
      controlOperation('control.accounts.delete', {
        summary: 'Remove an account with everything in it',
        success: { 200: DeleteResult },
      }),
    )
