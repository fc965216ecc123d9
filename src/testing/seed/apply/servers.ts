import type { Static, TObject } from '@sinclair/typebox'
import { WorkspaceError } from '../../../compute/workspace.ts'
import { BerthError, badRequest } from '../../../errors.ts'
import { accountCaller, type Caller } from '../../../http/caller.ts'
import { ServerCreate, ServerUpdate } from '../../../resources/servers/model.ts'
import type { FixtureEntry } from '../fixtures.ts'
import type { FileSource, FixtureVariables, ServerFixture } from '../resolve.ts'
import type { ApplyContext } from './context.ts'

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
  const { image } = one.value
  const system = image === undefined ? {} : { image }
  const body = { task: one.name, ...fieldsOf(ServerCreate, one.value) }
  const { id } = await servers.create(caller, body, system)
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
function variablesOf(
  { fixtures }: ApplyContext,
  { name, value }: FixtureEntry<ServerFixture>,
): FixtureVariables {
  const apart = fixtures.secrets.filter((one) => one.value.server === name)
  return Object.assign({}, value.secrets, ...apart.map((one) => one.value.values))
}

/** Returns the variables that are not set to their values yet. */
export const changedVariables = (wanted: FixtureVariables, present: FixtureVariables): FixtureVariables =>
  Object.fromEntries(Object.entries(wanted).filter(([name, value]) => present[name] !== value))

/**
 * Writes files into a workspace. Skips files with the right content, and leaves other files alone.
 *
 * @param directory the target, relative to the workspace; empty for the workspace itself
 * @returns whether any file was written
 */
export async function putFiles(
  { services }: ApplyContext,
  one: FixtureEntry<{ files: readonly FileSource[] | null }>,
  { caller, serverId, directory }: { caller: Caller; serverId: string; directory: string },
): Promise<boolean> {
  const workspace = services.servers.workspace(services.servers.getRow(caller, serverId))
  let written = false
  for (const source of one.value.files ?? []) {
    const path = directory === '' ? source.path : `${directory}/${source.path}`
    await one.run(async () => {
      const bytes = read(source)
      const present = await workspace.read(path, bytes.length).catch((error) => {
        if (error instanceof WorkspaceError) return null
        throw error
      })
      if (present && Buffer.from(present).equals(bytes)) return
      const content = Buffer.from(bytes).toString('base64')
      await services.files.write(caller, serverId, { path, content, encoding: 'base64' })
      written = true
    }, 'files')
  }
  return written
}

/**
 * Returns a file's content.
 *
 * @throws BerthError if it was removed since it was listed
 */
function read(source: FileSource): Uint8Array {
  try {
    return source.bytes()
  } catch (error) {
    if (error instanceof BerthError) throw error
    throw badRequest(
      `The file for ${source.path} cannot be read: ${error instanceof Error ? error.message : error}.`,
    )
  }
}
