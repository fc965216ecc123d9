import type { ToolAnnotations } from '@modelcontextprotocol/server'

/** What a tool does beyond what its method tells. */
type Exception = Partial<Pick<ToolAnnotations, 'destructiveHint' | 'idempotentHint' | 'openWorldHint'>>

/** Whatever a command, an agent or the code of an app does. */
const RUNS_CODE: Exception = { destructiveHint: true, openWorldHint: true }

/** By operation id. */
const EXCEPTIONS: Readonly<Record<string, Exception>> = {
  'servers.act': { destructiveHint: true },
  'exec.run': RUNS_CODE,
  'tasks.create': RUNS_CODE,
  'tasks.answer': RUNS_CODE,
  'tasks.cancel': { destructiveHint: true },
  'builds.create': RUNS_CODE,
  'deployments.create': RUNS_CODE,
  'projects.create': RUNS_CODE,
  'projects.init': RUNS_CODE,
  'projects.cleanup': { destructiveHint: true },
  'webhooks.create': { openWorldHint: true },
}

/**
 * What a host may tell a person before a call: reading changes nothing; PUT, PATCH and DELETE replace or remove, and
 * done twice do no more than done once (RFC 9110, 9.2); POST adds. Nothing reaches beyond berth unless it is said.
 */
export function annotationsOf(operationId: string, method: string): ToolAnnotations {
  if (method === 'GET') {
    return { readOnlyHint: true, destructiveHint: false, idempotentHint: true, openWorldHint: false }
  }
  const adds = method === 'POST'
  return {
    readOnlyHint: false,
    destructiveHint: !adds,
    idempotentHint: !adds,
    openWorldHint: false,
    ...EXCEPTIONS[operationId],
  }
}
