import type { Tool } from '@modelcontextprotocol/server'
import { badRequest } from '../../errors.ts'
import type { OperationTool } from './tool.ts'

/** Which tools a list has, and how it shows them. */
export interface ToolView {
  /** Whether the list has the tools for the usual work only. */
  readonly isCore: boolean
  /** Whether it has titles and the shapes of results, which take more room than all else together. */
  readonly hasSchemas: boolean
}

/** Operations whose tools `?tools=core` lists. */
const CORE: ReadonlySet<string> = new Set([
  'servers.list',
  'servers.create',
  'servers.get',
  'exec.run',
  'executions.output',
  'executions.delete',
  'files.read',
  'files.write',
  'projects.create',
  'projects.get',
  'projects.logs',
  'deployments.create',
])

/**
 * Returns which list the address of the endpoint asks for.
 *
 * @throws BerthError 400 for another value
 */
export function viewOf(url: string): ToolView {
  const { searchParams } = new URL(url)
  return {
    isCore: choiceOf(searchParams, 'tools', ['all', 'core']) === 'core',
    hasSchemas: choiceOf(searchParams, 'schemas', ['none', 'full']) === 'full',
  }
}

/** Returns the entries of `tools/list`. */
export const listed = (tools: readonly OperationTool[], { isCore, hasSchemas }: ToolView): Tool[] =>
  tools
    .filter(({ id }) => !isCore || CORE.has(id))
    .map(({ tool }) => {
      if (hasSchemas) return tool
      // The name and the description say what the title does.
      const { outputSchema: _, title: __, ...brief } = tool
      return brief
    })

function choiceOf(query: URLSearchParams, name: string, choices: readonly string[]): string | null {
  const given = query.getAll(name)
  const [only = null] = given
  if (only === null || (given.length === 1 && choices.includes(only))) return only
  throw badRequest(
    `"${name}" in the query: expected ${choices.join(' or ')}${given.length > 1 ? ', once' : `, got ${JSON.stringify(only)}`}.`,
  )
}
