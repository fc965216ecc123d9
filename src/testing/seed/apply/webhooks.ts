import { accountCaller } from '../../../http/caller.ts'
import type { WebhookFixture } from '../resolve.ts'
import type { ApplyContext } from './context.ts'

/**
 * Returns a webhook's URL.
 *
 * @param baseUrl of this instance, without a slash at the end
 */
export const localReceiver = ({ url, inbox }: WebhookFixture, baseUrl: string): string =>
  url ?? `${baseUrl}/_berth/inbox/${inbox}`

/** Creates or updates the webhooks. */
export async function applyWebhooks(context: ApplyContext): Promise<void> {
  if (context.fixtures.webhooks.length === 0) return
  const webhooks = await context.services.webhooks()
  for (const one of context.fixtures.webhooks) {
    const { account, events = [], secret } = one.value
    const url = localReceiver(one.value, context.baseUrl)
    const caller = accountCaller(context.accountId(account) ?? '')
    const known = context.records.find('webhook', one.name)?.id
    const id = webhooks.list(caller).find((present) => present.id === known)?.id
    await one.run(async () => {
      if (id !== undefined) {
        await webhooks.change(caller, id, { url, events, ...(secret === undefined ? {} : { secret }) })
        return
      }
      const made = await webhooks.create(caller, { url, events }, secret)
      context.recordCreated('webhook', one.name, made.id, () => webhooks.delete(caller, made.id))
    })
  }
}
