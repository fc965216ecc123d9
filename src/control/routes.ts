import { Elysia } from 'elysia'
import type { AccountsService } from '../accounts/service.ts'
import { BODY_LIMIT } from '../http/body.ts'
import type { SteerableClock } from '../runtime/clock.ts'
import { type ControlGuard, controlAccess } from './access.ts'
import { accountsRoutes } from './accounts.ts'
import { clockRoutes } from './clock.ts'
import { type DeliveryParts, deliveriesRoutes } from './deliveries.ts'
import { type EventParts, eventsRoutes } from './events.ts'
import { type InstanceState, instanceRoutes } from './instance.ts'

/** What the control API is made of. */
export interface ControlParts {
  guard: ControlGuard
  instance: InstanceState
  clock: SteerableClock
  accounts: AccountsService
  events: EventParts
  deliveries: DeliveryParts
}

/** `/_berth`: what operates and tests the running instance. */
export function controlRoutes({ guard, instance, clock, accounts, events, deliveries }: ControlParts) {
  const access = controlAccess(guard, BODY_LIMIT)
  return new Elysia({ name: 'berth/control' })
    .use(access)
    .use(instanceRoutes(instance))
    .use(clockRoutes(access, clock))
    .use(accountsRoutes(access, accounts))
    .use(eventsRoutes(access, events))
    .use(deliveriesRoutes(access, deliveries))
}
