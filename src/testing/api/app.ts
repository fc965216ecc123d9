/** Makes the Elysia app of the control API, `/_berth`, at its first request. */
import { type AnyElysia, Elysia } from 'elysia'
import { errorAnswers, methodsByRoutes } from '../../contract/error-response.ts'
import { CONTROL_OPERATIONS, listOperations, OperationIndex } from '../../contract/operations.ts'
import { BODY_LIMIT } from '../../http/body.ts'
import { requestEntry } from '../../http/request-entry.ts'
import { AccountsService } from '../../resources/accounts/service.ts'
import { Masks } from '../../runtime/masks.ts'
import { InboxStore } from '../inbox/store.ts'
import { controlAccess, controlEntry } from './control-access.ts'
import { CONTROL_GROUPS, type ControlGroup } from './groups.ts'
import type { ControlOptions } from './parts.ts'

export { controlGroupOf } from './groups.ts'

/** Returns the parts of the control API's document besides its operations. */
export const controlDocument = async () => (await import('./openapi.ts')).CONTROL_DOCUMENT

/** Makes apps of the control API, `/_berth`, which operates and tests the instance. */
interface ControlApi {
  /** Returns an app that has some groups of routes, and checks requests alike for every group. */
  mount(groups: readonly ControlGroup[]): Promise<AnyElysia>
  /** Returns an app that has all of them, for its document. */
  whole(): Promise<AnyElysia>
}

/**
 * Creates the control API. It is separate from the API and created at its first request, because few instances use it.
 */
export function createControlApi(options: ControlOptions): ControlApi {
  const { services, host, guard, instance, states, operations, commands, stopping } = options
  const { database, controlIds, inboxIds, logger, secrets } = services
  const access = controlAccess(guard, BODY_LIMIT)
  const whole = (): Promise<AnyElysia> => mount(Object.keys(CONTROL_GROUPS) as ControlGroup[])
  const dependencies = {
    ...{ services, host, guard, instance, states, operations, commands, stopping },
    access,
    inbox: new InboxStore(services),
    accounts: new AccountsService(services),
    masks: masking(() => secrets.values()),
    whole,
  }
  const mount = async (groups: readonly ControlGroup[]): Promise<AnyElysia> => {
    const root: AnyElysia = new Elysia({ name: 'berth/control', normalize: false })
    const methodsOf = methodsByRoutes(() => root.routes)
    root
      .use(
        errorAnswers(logger, methodsOf, directory, {
          operations: () => new OperationIndex(listOperations(CONTROL_OPERATIONS)),
          database,
        }),
      )
      .use(
        requestEntry((request) => (isPostToInbox(request) ? inboxIds : controlIds), instance.version, host),
      )
      .use(controlEntry(guard))
      .use(access)
    const loaded = await Promise.all(groups.map((group) => CONTROL_GROUPS[group](dependencies)))
    for (const routes of loaded) root.use(routes)
    return root
  }
  return { mount, whole }
}

const isPostToInbox = ({ method, url }: Request): boolean =>
  method === 'POST' && /^[a-z]+:\/\/[^/]*\/_berth\/inbox\//.test(url)

/** Returns a sentence that lists all paths. */
function directory(): string {
  const paths = listOperations(CONTROL_OPERATIONS).map(({ path }) => path)
  return `The control API has ${[...new Set(['/_berth/openapi.json', '/_berth/docs', ...paths])].join(', ')}.`
}

/** Returns the masks of all values that are or were secret, updated at each call. */
function masking(values: () => Iterable<string>): () => Masks {
  const masks = new Masks()
  return () => {
    masks.update(values())
    return masks
  }
}
