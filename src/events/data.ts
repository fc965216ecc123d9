import type { EventName } from './names.ts'

/** What happened to a task. */
interface TaskData {
  task_id: string
  server_id: string
  status: string
  result?: string
}

/** Where a budget stands: credits of the calendar month. */
interface QuotaData {
  credits_used: number
  budget_cap: number
}

/** What happened to a model that is being tuned. */
type TuningData = Record<string, unknown>

/**
 * What each event's payload says beside `event` and `created_at` (specification, "Payload shapes").
 * The fields are snake_case, as in every payload.
 */
export interface EventData extends Record<EventName, object> {
  'task.created': TaskData
  'task.completed': TaskData
  'task.failed': TaskData
  'project.ready': { project_id: string; server_id: string; url: string | null }
  'project.init_failed': { project_id: string; server_id: string; init_phase: string }
  'project.secrets_required': { project_id: string; server_id: string; keys: string[] }
  'deployment.live': { server_id: string; url: string }
  'deployment.removed': { server_id: string; url: string }
  'server.created': { server_id: string; status: string; tier: string; region: string }
  'server.stopped': { server_id: string; status: string; tier: string; region: string }
  'server.deleted': { server_id: string; tier: string; region: string }
  'quota.threshold': QuotaData
  'quota.cap_reached': QuotaData
  'tuning.started': TuningData
  'tuning.completed': TuningData
}
