import type { DeliveryFault, DeliveryFaults } from '../../resources/webhooks/delivery.ts'
import type { AppliedFaults, FaultStore } from './store.ts'

/** Returns the object that applies faults to attempts to deliver. */
export const deliveryFaults = (store: FaultStore): DeliveryFaults => ({
  apply(event, { id: webhookId, accountId }) {
    if (!store.any) return null
    const delivery = { webhookId, event }
    const { delayMs, effect } = store.apply({
      ...{ operation: undefined, method: 'POST', path: '', accountId, client: null, needsPath: false },
      delivery,
    })
    return { delayMs, outcome: outcomeOf(effect) }
  },
})

/** Returns the outcome that a fault gives to an attempt; null if the attempt continues. */
function outcomeOf(applied: AppliedFaults['effect']): DeliveryFault['outcome'] {
  if (applied === null) return null
  const { faultId, effect } = applied
  const who = `The fault ${faultId}, which a test has set,`
  if ('lose_response' in effect) return { isSent: true, error: `${who} lost the response.` }
  if ('error' in effect) {
    const { status, message = '', headers = {} } = effect.error
    const error = `${who} answered with ${status} in place of the receiver.`
    return { isSent: false, error, response: { status, headers, text: message } }
  }
  if ('respond' in effect) {
    const { status, content_type: type, headers = {}, body = '' } = effect.respond
    const error = `${who} answered with ${status} in place of the receiver.`
    const all = type === undefined ? headers : { 'content-type': type, ...headers }
    return { isSent: false, error, response: { status, headers: all, text: body } }
  }
  return { isSent: false, error: `${who} cut the connection: nothing was sent.` }
}
