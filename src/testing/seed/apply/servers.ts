import { accountCaller } from '../../../http/caller.ts'
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
  const { account, task = one.name, tier, region } = one.value
  const caller = accountCaller(applying.accountId(account) ?? '')
  const wishes = { task, ...(tier ? { tier } : {}), ...(region ? { region } : {}) }
  const { id } = await servers.create(caller, wishes)
  applying.keep('server', one.name, id, () => servers.delete(caller, id))
  return id
}

async function mend(applying: Applying, one: Declared<ServerFixture>, id: string): Promise<string> {
  const { servers } = applying.services
  const { account, task, region } = one.value
  const caller = accountCaller(applying.accountId(account) ?? '')
  const row = servers.row(caller, id)
  const changes = {
    ...(task === undefined || task === row.task ? {} : { task }),
    ...(region === undefined || region === row.region ? {} : { region }),
  }
  if (Object.keys(changes).length > 0) await servers.update(caller, id, changes)
  return id
}

/** The variables of a server, those that stand apart from it too. */
function variablesOf({ fixtures }: Applying, { name, value }: Declared<ServerFixture>): Variables {
  const apart = fixtures.secrets.filter((one) => one.value.server === name)
  return Object.assign({}, value.secrets, ...apart.map((one) => one.value.values))
}

/** The variables that are not set to their values yet. */
export const changed = (wanted: Variables, present: Variables): Variables =>
  Object.fromEntries(Object.entries(wanted).filter(([name, value]) => present[name] !== value))
