import { type Static, t } from 'elysia'
import { integer } from '../../contract/schema.ts'
import { ServerStatus } from '../servers/model.ts'

const bytes = (description: string) => integer({ minimum: 0, description })

/** What a server uses now, and its limits. */
export const ServerUsage = t.Object(
  {
    server_id: t.String(),
    status: ServerStatus,
    cpu_percent: t.Number({ description: 'Use of its processors lately; 100 is all that its size has.' }),
    cpus: t.Number({ description: 'Processors that its size has.' }),
    memory_bytes: bytes('Memory in use.'),
    memory_limit_bytes: integer(),
    storage_bytes: bytes('What the workspace takes on disk.'),
    storage_limit_bytes: integer(),
    processes: integer({ minimum: 0, description: 'Processes and threads.' }),
    processes_limit: integer(),
    measured_at: t.String({ format: 'date-time' }),
  },
  { $id: 'ServerUsage', additionalProperties: true },
)
export type ServerUsage = Static<typeof ServerUsage>

/** The usage of a single server, with its open ports. */
export const SingleServerUsage = t.Object(
  {
    ...ServerUsage.properties,
    ports: t.Array(integer(), { description: 'TCP ports that its programs listen on.' }),
  },
  { $id: 'SingleServerUsage', additionalProperties: true },
)
export type SingleServerUsage = Static<typeof SingleServerUsage>
