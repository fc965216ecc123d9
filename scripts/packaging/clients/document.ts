import type { OpenApiDocument } from '../../../src/contract/openapi/model.ts'
import { describeApi, describeControl } from '../../../src/instance/describe.ts'

/** Returns one document of the API and the control API, from which clients are generated. */
export async function mergedDocument(): Promise<OpenApiDocument> {
  const [api, control] = [await describeApi(), await describeControl()]
  const merged = structuredClone(api) as OpenApiDocument & Record<string, unknown>
  const paths = merged.paths as Record<string, Record<string, { security?: unknown }>>
  for (const [path, methods] of Object.entries(control.paths as typeof paths))
    paths[path] = Object.fromEntries(
      Object.entries(methods).map(([method, operation]) => [
        method,
        { ...operation, security: operation.security ?? [{ adminToken: [] }] },
      ]),
    )
  const components = merged.components as Record<string, object>
  for (const [kind, members] of Object.entries(control.components as Record<string, object>))
    components[kind] = { ...members, ...components[kind] }
  delete merged.webhooks
  return merged
}
