import { Elysia, type Static, t } from 'elysia'
import { ComputeError } from '../../compute/sandbox.ts'
import { OUTBOUND_MODES } from '../../config/values.ts'
import { operation } from '../../contract/operation.ts'
import { oneOf } from '../../contract/schema.ts'
import { BerthError, badRequest, notFound } from '../../errors.ts'
import { RefusedConnection } from '../../resources/exec/model.ts'
import type { ServerNetworkState } from '../../resources/servers/network.ts'
import type { ServerRow } from '../../resources/servers/table.ts'
import { HOST_PATTERN_FORMS, parseHostPattern } from '../../runtime/host-pattern.ts'
import type { ControlParts } from './parts.ts'

/** Which connections of a server pass. */
export const Outbound = oneOf([...OUTBOUND_MODES], {
  $id: 'Outbound',
  description:
    '`open`: all that this machine reaches, but not itself. `public`: the internet and listed hosts. `list`: listed hosts only. `none`: nothing.',
})

const Hosts = t.Array(t.String({ minLength: 1, maxLength: 300 }), {
  maxItems: 1_000,
  description: `Hosts with or without a port, ${HOST_PATTERN_FORMS}.`,
})

const ShownNetwork = t.Object(
  {
    server_id: t.String(),
    outbound: Outbound,
    hosts: Hosts,
    chosen: t.Object(
      { outbound: t.Nullable(Outbound), hosts: t.Nullable(Hosts) },
      { $id: 'ChosenNetwork', description: "What is set for this server; null is the instance's default." },
    ),
    server_hosts: t.Array(t.Integer(), {
      description: "Ports of this machine's loopback that the server reaches at the same port of its own.",
    }),
    enforced: t.Nullable(t.Boolean(), {
      description:
        "False if the server shares this machine's network, or has one of an engine that leads outside; null while it sleeps.",
    }),
    refused: t.Array(RefusedConnection, {
      description: 'What was refused since the last start or change, the newest last.',
    }),
  },
  { $id: 'ServerNetwork' },
)

/** The network of a server, as the control API shows it. */
type ShownNetwork = Static<typeof ShownNetwork>

const ServerNetworkUpdate = t.Object(
  { outbound: t.Optional(t.Nullable(Outbound)), hosts: t.Optional(t.Nullable(Hosts)) },
  { $id: 'ServerNetworkUpdate', additionalProperties: false },
)

/** Serves `/_berth/servers/{id}/network`: the hosts that a server may reach. */
export const serverNetworkRoutes = ({ access, services: { servers } }: ControlParts) => {
  const rowOf = (id: string): ServerRow => {
    const row = servers.records.find(id)
    if (row) return row
    throw notFound(`The server "${id}"`)
  }
  return new Elysia({ prefix: '/_berth/servers/:serverId/network' })
    .use(access)
    .get(
      '',
      async ({ params }) => {
        const row = rowOf(params.serverId)
        return shown(row.id, await servers.networks.show(row, servers.lifecycle.sandbox(row.id)))
      },
      operation('control.serverNetwork.get', {
        access: 'admin',
        summary: 'What a server may reach',
        description: 'With the destinations that were refused, each with what would allow it.',
        success: { 200: ShownNetwork },
        errors: [404],
      }),
    )
    .patch(
      '',
      async ({ params, body: { outbound, hosts } }) => {
        const row = rowOf(params.serverId)
        const wrong = hosts?.find((host) => parseHostPattern(host) === null)
        if (wrong !== undefined)
          throw badRequest(`hosts: "${wrong}" is no host. Expected one ${HOST_PATTERN_FORMS}.`)
        const changes = {
          ...(outbound === undefined ? {} : { mode: outbound }),
          ...(hosts === undefined ? {} : { hosts }),
        }
        try {
          return shown(row.id, await servers.networks.change(row, changes, servers.lifecycle.sandbox(row.id)))
        } catch (error) {
          if (!(error instanceof ComputeError)) throw error
          throw new BerthError('compute_backend_error', error.message)
        }
      },
      operation(
        'control.serverNetwork.update',
        {
          access: 'admin',
          summary: 'Change what a server may reach',
          description:
            "It is in effect when the response comes: connections that are no longer allowed are cut. Null returns to the instance's default.",
          success: { 200: ShownNetwork },
          errors: [404, 502],
        },
        { body: ServerNetworkUpdate },
      ),
    )
}

const shown = (
  id: string,
  { chosen, settings, machinePorts, enforced, refused }: ServerNetworkState,
): ShownNetwork => ({
  server_id: id,
  outbound: settings.mode,
  hosts: [...settings.hosts],
  chosen: { outbound: chosen.mode, hosts: chosen.hosts === null ? null : [...chosen.hosts] },
  server_hosts: [...machinePorts],
  enforced,
  refused: [...refused],
})
