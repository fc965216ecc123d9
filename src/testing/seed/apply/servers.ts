import type { Static, TObject } from '@sinclair/typebox'
import { accountCaller } from '../../../http/caller.ts'
import { ServerCreate, ServerUpdate } from '../../../resources/servers/model.ts'
import type { FixtureEntry } from '../fixture-entry.ts'
import type { ServerFixture, Variables } from '../resolve.ts'
import type { ApplyContext } from './context.ts'
import { putFiles } from './files.ts'

/** Creates or updates the servers, with their variables and files. */
export async function applyServers(context: ApplyContext): Promise<void> {
  const { servers, secrets } = context.services
  for (const one of context.fixtures.servers) {
    const caller = accountCaller(context.accountId(one.value.account) ?? '')
    const known = context.records.find('server', one.name)?.id
    const present = known !== undefined && servers.owns(caller.accountId, known) ? known : undefined
    const id = await one.run(() =>
      present === undefined ? create(context, one) : update(context, one, present),
    )
    const changes = changedVariables(variablesOf(context, one), secrets.environment(id))
    await one.run(() => secrets.setForServer(caller, { server_id: id, secrets: changes }), 'secrets')
    await putFiles(context, one, { caller, serverId: id, directory: '' })
  }
}

/** Stops or starts servers as the files say, after everything else has been applied to them. */
export async function setServerStatus(context: ApplyContext): Promise<void> {
  const { servers } = context.services
  for (const one of context.fixtures.servers) {
    const { status = context.mode === 'up' ? 'running' : undefined, account } = one.value
    if (status === undefined) continue
    const caller = accountCaller(context.accountId(account) ?? '')
    const id = context.idOf('server', one.name)
    await one.run(() => servers.act(caller, id, status === 'sleeping' ? 'stop' : 'start'), 'status')
  }
}

async function create(context: ApplyContext, one: FixtureEntry<ServerFixture>): Promise<string> {
  const { servers } = context.services
  const caller = accountCaller(context.accountId(one.value.account) ?? '')
  const { id } = await servers.create(caller, { task: one.name, ...fieldsOf(ServerCreate, one.value) })
  context.recordCreated('server', one.name, id, () => servers.delete(caller, id))
  return id
}

async function update(context: ApplyContext, one: FixtureEntry<ServerFixture>, id: string): Promise<string> {
  const { servers } = context.services
  const caller = accountCaller(context.accountId(one.value.account) ?? '')
  const row: Readonly<Record<string, unknown>> = servers.getRow(caller, id)
  const changes = fieldsOf(ServerUpdate, one.value)
  if (Object.entries(changes).some(([name, value]) => row[name] !== value)) {
    await servers.update(caller, id, changes)
  }
  return id
}

/** The fields of a value that a request's shape has. */
const fieldsOf = <Shape extends TObject>(shape: Shape, value: Static<Shape>): Static<Shape> =>
  Object.fromEntries(Object.entries(value).filter(([name]) => Object.hasOwn(shape.properties, name)))

/** Returns the variables of a server, including those given separately. */
function variablesOf({ fixtures }: ApplyContext, { name, value }: FixtureEntry<ServerFixture>): Variables {
  const apart = fixtures.secrets.filter((one) => one.value.server === name)
  return Object.assign({}, value.secrets, ...apart.map((one) => one.value.values))
}

/** Returns the variables that are not set to their values yet. */
export const changedVariables = (wanted: Variables, present: Variables): Variables =>
  Object.fromEntries(Object.entries(wanted).filter(([name, value]) => present[name] !== value))
