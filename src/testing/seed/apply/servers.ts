import type { Static, TObject } from '@sinclair/typebox'
import { accountCaller } from '../../../http/caller.ts'
import { ServerCreate, ServerUpdate } from '../../../resources/servers/model.ts'
import type { Declared } from '../declared.ts'
import type { ServerFixture, Variables } from '../settle.ts'
import type { Applying } from './applying.ts'
import { putFiles } from './files.ts'

/** Makes and mends servers, with their variables and files. */
export async function applyServers(applying: Applying): Promise<void> {
  const { servers, secrets } = applying.services
  for (const one of applying.fixtures.servers) {
    const caller = accountCaller(applying.accountId(one.value.account) ?? '')
    const known = applying.records.find('server', one.name)?.id
    const present = known !== undefined && servers.owns(caller.accountId, known) ? known : undefined
    const id = await one.telling(() =>
      present === undefined ? make(applying, one) : mend(applying, one, present),
    )
    const changes = changed(variablesOf(applying, one), secrets.environment(id))
    await one.telling(() => secrets.setForServer(caller, { server_id: id, secrets: changes }), 'secrets')
    await putFiles(applying, one, { caller, serverId: id, folder: '' })
  }
}

/** Puts servers to sleep, or wakes them, as the files say: when nothing works on them any more. */
export async function settleStatus(applying: Applying): Promise<void> {
  const { servers } = applying.services
  for (const one of applying.fixtures.servers) {
    const { status, account } = one.value
    if (status === undefined) continue
    const caller = accountCaller(applying.accountId(account) ?? '')
    const id = applying.made('server', one.name)
    await one.telling(() => servers.act(caller, id, status === 'sleeping' ? 'stop' : 'start'), 'status')
  }
}

async function make(applying: Applying, one: Declared<ServerFixture>): Promise<string> {
  const { servers } = applying.services
  const caller = accountCaller(applying.accountId(one.value.account) ?? '')
  const { id } = await servers.create(caller, { task: one.name, ...fieldsOf(ServerCreate, one.value) })
  applying.keep('server', one.name, id, () => servers.delete(caller, id))
  return id
}

async function mend(applying: Applying, one: Declared<ServerFixture>, id: string): Promise<string> {
  const { servers } = applying.services
  const caller = accountCaller(applying.accountId(one.value.account) ?? '')
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

/** The variables of a server, those that stand apart from it too. */
function variablesOf({ fixtures }: Applying, { name, value }: Declared<ServerFixture>): Variables {
  const apart = fixtures.secrets.filter((one) => one.value.server === name)
  return Object.assign({}, value.secrets, ...apart.map((one) => one.value.values))
}

/** The variables that are not set to their values yet. */
export const changed = (wanted: Variables, present: Variables): Variables =>
  Object.fromEntries(Object.entries(wanted).filter(([name, value]) => present[name] !== value))
