import type { TProperties } from '@sinclair/typebox'
import { Elysia, type Static, status, t } from 'elysia'
import type { NetworkFault } from '../../compute/sandbox.ts'
import { listOf } from '../../contract/model.ts'
import { operation } from '../../contract/operation.ts'
import { integer, oneOf } from '../../contract/schema.ts'
import { badRequest, notFound } from '../../errors.ts'
import type { ServerRow } from '../../resources/servers/table.ts'
import { HOST_PATTERN_FORMS, parseHostPattern } from '../../runtime/host-pattern.ts'
import type { ActiveFault, FaultDuration, LastingFaultKind } from '../faults/compute/active.ts'
import type { FaultyCompute } from '../faults/compute/compute.ts'
import type { FaultySandbox } from '../faults/compute/sandbox.ts'
import { SERVER_FAULT_KINDS, type ServerFaultKind } from '../names.ts'
import type { ControlParts } from './parts.ts'

const Kind = oneOf([...SERVER_FAULT_KINDS], { $id: 'ServerFaultKind' })

const networkFields = {
  offline: t.Optional(
    t.Boolean({ description: 'Nothing passes: names do not resolve, connections break off.' }),
  ),
  refused: t.Optional(
    t.Boolean({ description: 'The names do not exist, and connections to the hosts are refused.' }),
  ),
  latency_ms: t.Optional(
    integer({ minimum: 0, maximum: 60_000, description: 'Milliseconds by which responses arrive later.' }),
  ),
  jitter_ms: t.Optional(
    integer({ minimum: 0, maximum: 60_000, description: 'Milliseconds by which that varies, up and down.' }),
  ),
  loss: t.Optional(
    t.Number({ minimum: 0, maximum: 1, description: 'Share of the packets that are lost, from 0 to 1.' }),
  ),
  hosts: t.Optional(
    t.Array(t.String({ minLength: 1, maxLength: 300 }), {
      minItems: 1,
      maxItems: 1_000,
      description: `The hosts that it is for, ${HOST_PATTERN_FORMS}; else everything outside.`,
    }),
  ),
  seed: t.Optional(
    integer({
      minimum: 0,
      maximum: 2 ** 31 - 1,
      description: 'Decides what is lost and how late; 1 by default.',
    }),
  ),
}

const ShownFault = t.Object(
  {
    server_id: t.String(),
    kind: Kind,
    active: t.Boolean({ description: 'Whether it lasts; one that does not has happened.' }),
    for_ms: t.Optional(t.Number()),
    delay_ms: t.Optional(t.Number()),
    times: t.Optional(t.Number()),
    times_left: t.Optional(t.Number({ description: 'Commands that it is still for.' })),
    ...networkFields,
  },
  { $id: 'ServerFault' },
)

/** A fault inside a server, as the control API shows it. */
export type ShownFault = Static<typeof ShownFault>
export const ShownFaults = listOf('faults', ShownFault)

const Lifted = t.Object({ server_id: t.String(), lifted: t.Array(Kind) }, { $id: 'LiftedFaults' })

const MAX_MS = 3_600_000

const for_ms = t.Optional(
  integer({ minimum: 1, maximum: MAX_MS, description: 'How long it lasts; else until it is lifted.' }),
)
const times = t.Optional(
  integer({ minimum: 1, maximum: 1_000_000, description: 'Commands that it is for; else all.' }),
)

/** A network fault in which nothing happens. */
const NO_EFFECT = {
  offline: { const: false },
  refused: { const: false },
  latency_ms: { const: 0 },
  jitter_ms: { const: 0 },
  loss: { const: 0 },
}

/** A fault inside a server, with the fields of its kind. */
const ServerFaultCreate = t.Union(
  [
    fault('crash', {}),
    fault('oom', { times }),
    fault('disk_full', { for_ms }),
    fault('hang', { for_ms }),
    fault('slow_exec', {
      delay_ms: integer({
        minimum: 1,
        maximum: MAX_MS,
        description: 'Milliseconds that each command waits.',
      }),
      times,
      for_ms,
    }),
    // For documents; `toNetworkFault` checks it.
    { ...fault('network', { ...networkFields, for_ms }), not: { properties: NO_EFFECT } },
  ],
  { $id: 'ServerFaultCreate' },
)

/** The shape of one kind of fault. */
function fault<const Kind extends ServerFaultKind, Fields extends TProperties>(kind: Kind, fields: Fields) {
  const words = kind.split('_').map((word) => `${word.charAt(0).toUpperCase()}${word.slice(1)}`)
  return t.Object(
    { kind: t.Literal(kind), ...fields },
    { $id: `${words.join('')}Fault`, additionalProperties: false },
  )
}

/** A requested fault inside a server. */
type ServerFault = { readonly kind: ServerFaultKind } & FaultDuration

/** Serves `/_berth/servers/{id}/fault`: faults inside one server. */
export const serverFaultsRoutes = ({ access, services: { servers, compute } }: ControlParts) => {
  const rowOf = (id: string): ServerRow => {
    const row = servers.records.find(id)
    if (row) return row
    throw notFound(`The server "${id}"`)
  }
  const lift = (id: string, kinds: (sandbox: FaultySandbox) => LastingFaultKind[]) => {
    const row = rowOf(id)
    const sandbox = compute.running(id)
    const lifted = sandbox === undefined ? [] : kinds(sandbox)
    // The reserved storage is free again.
    if (lifted.includes('disk_full')) servers.meter.changed(row)
    return { server_id: id, lifted }
  }
  return new Elysia({ prefix: '/_berth/servers/:serverId/fault' })
    .use(access)
    .get(
      '',
      ({ params }) => {
        const { id } = rowOf(params.serverId)
        return { faults: shownServerFaults(compute, id) }
      },
      operation('control.serverFaults.list', {
        access: 'admin',
        summary: 'The faults that last inside a server',
        description: 'A crash happens once, so it is not in this list.',
        success: { 200: ShownFaults },
        errors: [404],
      }),
    )
    .post(
      '',
      async ({ body, params }) => {
        const row = rowOf(params.serverId)
        const fault = toFault(body)
        const sandbox = compute.running(row.id)
        if (sandbox === undefined || sandbox.ending) {
          throw badRequest(
            `The server "${row.id}" sleeps, and nothing of it runs that could fail. Start it with POST /servers/${row.id}/actions {"action":"start"}, or run a command on it.`,
          )
        }
        const active = await causeFault(sandbox, fault)
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
          description:
            'Crashes the server, exhausts its memory, fills its disk, makes its commands hang or slow, or disturbs its network. A sleeping server is refused.',
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
        description: 'Commands that hang continue.',
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
        description: 'Commands that the fault held up continue.',
        success: { 200: Lifted },
        errors: [404],
      }),
    )
}

/** Returns the faults that last inside a server. */
export const shownServerFaults = (compute: FaultyCompute, serverId: string): ShownFault[] =>
  (compute.running(serverId)?.faults?.list() ?? []).map((fault) => shown(serverId, fault))

/** Converts a request's body to a fault. */
const toFault = (
  body: {
    kind: ServerFaultKind
    for_ms?: number
    times?: number
    delay_ms?: number
  } & NetworkFields,
): ServerFault => ({
  kind: body.kind,
  ...(body.kind === 'network' ? { network: toNetworkFault(body) } : {}),
  ...(body.for_ms === undefined ? {} : { forMs: body.for_ms }),
  ...(body.times === undefined ? {} : { times: body.times }),
  ...(body.delay_ms === undefined ? {} : { delayMs: body.delay_ms }),
})

/** The fields of a network fault, as requests and responses have them. */
interface NetworkFields {
  offline?: boolean
  refused?: boolean
  latency_ms?: number
  jitter_ms?: number
  loss?: number
  hosts?: string[]
  seed?: number
}

/** @throws BerthError 400 if nothing is to happen, or a host is invalid */
function toNetworkFault({
  offline = false,
  refused = false,
  latency_ms: latencyMs = 0,
  jitter_ms: jitterMs = 0,
  loss = 0,
  hosts,
  seed = 1,
}: NetworkFields): NetworkFault {
  if (!offline && !refused && latencyMs === 0 && jitterMs === 0 && loss === 0) {
    throw badRequest('Say what happens to the network: offline, refused, latency_ms, jitter_ms or loss.')
  }
  const wrong = hosts?.find((host) => parseHostPattern(host) === null)
  if (wrong !== undefined) {
    throw badRequest(`hosts: "${wrong}" is no host. Expected one ${HOST_PATTERN_FORMS}.`)
  }
  return { offline, refused, latencyMs, jitterMs, loss, seed, ...(hosts === undefined ? {} : { hosts }) }
}

/** Returns the fields that say something. */
const shownNetwork = ({
  offline,
  refused,
  latencyMs,
  jitterMs,
  loss,
  hosts,
  seed,
}: NetworkFault): NetworkFields => ({
  ...(offline ? { offline } : {}),
  ...(refused ? { refused } : {}),
  ...(latencyMs ? { latency_ms: latencyMs } : {}),
  ...(jitterMs ? { jitter_ms: jitterMs } : {}),
  ...(loss ? { loss } : {}),
  ...(hosts === undefined ? {} : { hosts: [...hosts] }),
  ...(jitterMs || loss ? { seed } : {}),
})

/**
 * Causes a fault.
 *
 * @returns it, or null if it does not last.
 * @throws BerthError 400 if it is impossible here, 502
 */
async function causeFault(
  sandbox: FaultySandbox,
  { kind, ...duration }: ServerFault,
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
      if (duration.times === undefined) {
        await exhaustMemory(sandbox.withoutFaults)
        return null
      }
    } catch (error) {
      throw error instanceof NoMemoryFault ? badRequest(error.message) : error
    }
  }
  if (kind === 'network' && sandbox.outboundControl === null) {
    throw badRequest(
      "The server shares this machine's network, or has one of an engine that leads outside, of which berth disturbs nothing. `berth doctor` shows what another needs.",
    )
  }
  const faults = await sandbox.openFaults()
  await faults.begin(kind, duration)
  return faults.list().find((one) => one.kind === kind) ?? { kind, ...duration }
}

const isLasting = (kind: string): kind is LastingFaultKind =>
  kind !== 'crash' && (SERVER_FAULT_KINDS as readonly string[]).includes(kind)

const shown = (id: string, { kind, forMs, delayMs, times, timesLeft, network }: ActiveFault): ShownFault => ({
  server_id: id,
  kind,
  active: true,
  ...(forMs === undefined ? {} : { for_ms: forMs }),
  ...(delayMs === undefined ? {} : { delay_ms: delayMs }),
  ...(times === undefined ? {} : { times }),
  ...(timesLeft === undefined ? {} : { times_left: timesLeft }),
  ...(network === undefined ? {} : shownNetwork(network)),
})
