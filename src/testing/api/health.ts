import { Elysia, t } from 'elysia'
import { AGENTS } from '../../config/agents.ts'
import { ComputeKind } from '../../contract/model.ts'
import { operation } from '../../contract/operation.ts'
import { integer, oneOf, used } from '../../contract/schema.ts'
import { toIso } from '../../runtime/clock.ts'
import { JOURNAL_CAUSES } from '../journal/journal.ts'
import type { ControlParts } from './parts.ts'

const Readiness = t.Object({ ready: t.Boolean() }, { $id: 'Readiness' })

const Health = t.Object(
  {
    status: t.Literal('ok'),
    version: t.String(),
    uptime_ms: t.Number(),
    ephemeral: t.Boolean({ description: 'Whether everything is removed when the instance stops.' }),
    agent: oneOf([...AGENTS], { $id: 'AgentKind', description: 'Who does tasks and builds.' }),
    compute: ComputeKind,
    enforced: t.Object(
      {
        isolation: t.String(),
        cpu: t.String(),
        memory: t.String(),
        processes: t.String(),
        disk: t.String(),
        network: t.String(),
        user: t.String(),
      },
      { $id: 'Enforcement', description: 'What holds on this machine, never more.' },
    ),
    isolation_rejected: t.Array(t.String(), {
      description: 'Stronger isolations that cannot be used on this machine; `berth doctor` says why.',
    }),
    clock: t.Object(
      {
        now: t.String({ format: 'date-time' }),
        frozen: t.Boolean({ description: 'Whether it stands until it is moved.' }),
        offset_ms: integer({ description: "How far it is ahead of the machine's calendar." }),
      },
      { $id: 'HealthClock', description: 'The clock that tests may move or freeze.' },
    ),
    journal: t.Object(
      {
        since: t.String({ format: 'date-time', description: 'By the clock.' }),
        begun_by: oneOf([...JOURNAL_CAUSES], {
          $id: 'JournalCause',
          description: 'What began it, and emptied the one before.',
        }),
      },
      { $id: 'HealthJournal', description: 'The journal of requests: it has none from before.' },
    ),
  },
  { $id: 'Health' },
)

/** Serves `/_berth/health` and `/_berth/ready`, which need no credential and reveal no secret. */
export const instanceRoutes = ({ instance, services: { clock, journal } }: ControlParts) =>
  new Elysia({ prefix: '/_berth' })
    .get(
      '/health',
      async () => ({
        status: 'ok' as const,
        version: instance.version,
        uptime_ms: instance.uptimeMs(),
        ephemeral: instance.ephemeral,
        agent: instance.agent,
        compute: instance.compute,
        enforced: await instance.enforced(),
        isolation_rejected: [...instance.rejectedIsolations],
        clock: { now: toIso(clock.now()), frozen: clock.frozen, offset_ms: Math.round(clock.offset) },
        journal: { since: toIso(journal.begun.at), begun_by: journal.begun.by },
      }),
      operation('control.health', {
        access: 'public',
        summary: 'What runs, and what is enforced on this machine',
        description:
          'Responds as soon as the process accepts connections. `enforced` says which limits this machine enforces.',
        success: { 200: Health },
      }),
    )
    .get(
      '/ready',
      ({ set }) => {
        const ready = instance.isReady()
        if (!ready) set.status = 503
        return { ready }
      },
      operation('control.ready', {
        access: 'public',
        summary: 'Whether the start, recovery included, is done',
        description:
          'Responds with 200 when migrations, recovery and fixtures files are done, and with 503 before.',
        success: { 200: used(Readiness, 'Ready.'), 503: used(Readiness, 'Still starting.') },
      }),
    )
