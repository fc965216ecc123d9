import { accountCaller } from '../../../http/caller.ts'
import type { WebhookFixture } from '../settle.ts'
import type { Applying } from './applying.ts'

/** Where a webhook leads. @param baseUrl of this instance, without a slash at the end */
export const destinationOf = ({ url, inbox }: WebhookFixture, baseUrl: string): string =>
  url ?? `${baseUrl}/_berth/inbox/${inbox}`

/** Makes and mends webhooks. */
export async function applyWebhooks(applying: Applying): Promise<void> {
  if (applying.fixtures.webhooks.length === 0) return
  const webhooks = await applying.services.webhooks()
  for (const one of applying.fixtures.webhooks) {
    const { account, events = [], secret } = one.value
    const url = destinationOf(one.value, applying.baseUrl)
    const caller = accountCaller(applying.accountId(account) ?? '')
    const known = applying.records.find('webhook', one.name)?.id
    const id = webhooks.list(caller).find((present) => present.id === known)?.id
    await one.telling(async () => {
      if (id !== undefined) {
        await webhooks.change(caller, id, { url, events, ...(secret === undefined ? {} : { secret }) })
        return
      }
      const made = await webhooks.create(caller, { url, events }, secret)
      applying.keep('webhook', one.name, made.id, () => webhooks.delete(caller, made.id))
    })
  }
}
