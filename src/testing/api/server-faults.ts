import { Elysia, type Static, status, t } from 'elysia'
import { Given, Mistake } from '../../contract/given.ts'
import { operation } from '../../contract/operation.ts'
import { documented, integer, oneOf } from '../../contract/schema.ts'
import { badRequest, notFound } from '../../errors.ts'
import type { ServersService } from '../../resources/servers/service.ts'
import type { ServerRow } from '../../resources/servers/table.ts'
import type { ActiveFault, LastingKind } from '../faults/compute/active.ts'
import type { FaultyCompute } from '../faults/compute/compute.ts'
import type { FaultySandbox } from '../faults/compute/sandbox.ts'
import type { ControlAccess } from './access.ts'
import { readServerFault, SERVER_FAULT_KINDS, type ServerFault } from './server-fault-read.ts'

const Kind = oneOf([...SERVER_FAULT_KINDS])

const ShownFault = t.Object(
  {
    server_id: t.String(),
    kind: Kind,
    active: t.Boolean({ description: 'Whether it lasts; one that does not has happened.' }),
    for_ms: t.Optional(t.Number()),
    delay_ms: t.Optional(t.Number()),
    times: t.Optional(t.Number()),
    times_left: t.Optional(t.Number({ description: 'Commands that it is still for.' })),
  },
  { $id: 'ServerFault' },
)

/** A fault inside a server, as the control API shows it. */
export type ShownFault = Static<typeof ShownFault>

const Lifted = t.Object({ server_id: t.String(), lifted: t.Array(Kind) }, { $id: 'LiftedFaults' })

/** Its shape is checked by the reader, which knows what each kind takes. */
const ServerFaultCreate = documented(
  t.Object(
    {
      kind: Kind,
      for_ms: t.Optional(integer({ minimum: 1, description: 'How long it lasts; else until it is lifted.' })),
      times: t.Optional(integer({ minimum: 1, description: 'Commands that it is for; else all.' })),
      delay_ms: t.Optional(integer({ minimum: 1, description: 'What each command waits, for `slow_exec`.' })),
    },
    { $id: 'ServerFaultCreate', additionalProperties: false },
  ),
)

/** What the calls about faults of servers need. */
export interface ServerFaultParts {
  servers: ServersService
  compute: FaultyCompute
}

/** `/_berth/servers/{id}/fault`: what goes wrong inside one server. */
export const serverFaultsRoutes = (access: ControlAccess, { servers, compute }: ServerFaultParts) => {
  const rowOf = (id: string): ServerRow => {
    const row = servers.find(id)
    if (row) return row
    throw notFound(`The server "${id}"`)
  }
  const lift = (id: string, kinds: (sandbox: FaultySandbox) => LastingKind[]) => {
    const row = rowOf(id)
    const sandbox = compute.running(id)
    const lifted = sandbox === undefined ? [] : kinds(sandbox)
    // What counted as taken is free again.
    if (lifted.includes('disk_full')) servers.meter.changed(row)
    return { server_id: id, lifted }
  }
  return new Elysia({ prefix: '/_berth/servers/:serverId/fault' })
    .use(access)
    .get(
      '',
      ({ params }) => {
        const { id } = rowOf(params.serverId)
        const active = compute.running(id)?.faults?.list() ?? []
        return { faults: active.map((fault) => shown(id, fault)) }
      },
      operation('control.serverFaults.list', {
        access: 'admin',
        summary: 'The faults that last inside a server',
        success: { 200: t.Object({ faults: t.Array(ShownFault) }) },
        errors: [404],
      }),
    )
    .post(
      '',
      async ({ body, params }) => {
        const row = rowOf(params.serverId)
        const fault = read(body)
        const sandbox = compute.running(row.id)
        if (sandbox === undefined || sandbox.ending) {
          throw badRequest(
            `The server "${row.id}" sleeps, and nothing of it runs that could fail. Start it with POST /servers/${row.id}/actions {"action":"start"}, or run a command on it.`,
          )
        }
        const active = await happens(sandbox, fault)
        if (fault.kind === 'disk_full') servers.meter.changed(row)
        return status(
          201,
          active ? shown(row.id, active) : { server_id: row.id, kind: fault.kind, active: false },
        )
      },
      operation(
        'control.serverFaults.add',
        {
          access: 'admin',
          summary: 'Have something go wrong inside a server',
          success: { 201: ShownFault },
          errors: [404, 502],
        },
        { body: ServerFaultCreate },
      ),
    )
    .delete(
      '',
      ({ params }) => lift(params.serverId, ({ faults }) => faults?.liftAll() ?? []),
      operation('control.serverFaults.clear', {
        access: 'admin',
        summary: 'Lift all faults inside a server',
        success: { 200: Lifted },
        errors: [404],
      }),
    )
    .delete(
      '/:kind',
      ({ params }) => {
        const { kind } = params
        if (!isLasting(kind)) throw notFound(`The fault "${kind}"`)
        return lift(params.serverId, ({ faults }) => (faults?.lift(kind) ? [kind] : []))
      },
      operation('control.serverFaults.lift', {
        access: 'admin',
        summary: 'Lift one fault inside a server',
        success: { 200: Lifted },
        errors: [404],
      }),
    )
}

function read(body: unknown): ServerFault {
  try {
    return readServerFault(new Given(body))
  } catch (error) {
    throw error instanceof Mistake ? badRequest(error.sentence('in the body')) : error
  }
}

/** Has it happen, or begin. @returns it, where it lasts. @throws BerthError 400 where it cannot happen here, 502 */
async function happens(
  sandbox: FaultySandbox,
  { kind, ...lasting }: ServerFault,
): Promise<ActiveFault | null> {
  if (kind === 'crash') {
    sandbox.faultInjection.crash()
    await sandbox.exited
    return null
  }
  if (kind === 'oom') {
    const { checkMemory, exhaustMemory, NoMemoryFault } = await import('../faults/compute/hog.ts')
    try {
      checkMemory(sandbox)
      if (lasting.times === undefined) {
        await exhaustMemory(sandbox.bare)
        return null
      }
    } catch (error) {
      throw error instanceof NoMemoryFault ? badRequest(error.message) : error
    }
  }
  const faults = await sandbox.openFaults()
  await faults.begin(kind, lasting)
  return faults.list().find((one) => one.kind === kind) ?? { kind, ...lasting }
}

const isLasting = (kind: string): kind is LastingKind =>
  kind !== 'crash' && (SERVER_FAULT_KINDS as readonly string[]).includes(kind)

const shown = (id: string, { kind, forMs, delayMs, times, timesLeft }: ActiveFault): ShownFault => ({
  server_id: id,
  kind,
  active: true,
  ...(forMs === undefined ? {} : { for_ms: forMs }),
  ...(delayMs === undefined ? {} : { delay_ms: delayMs }),
  ...(times === undefined ? {} : { times }),
  ...(timesLeft === undefined ? {} : { times_left: timesLeft }),
})
