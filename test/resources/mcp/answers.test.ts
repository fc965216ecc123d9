import { afterAll, beforeAll, expect, test } from 'bun:test'
import { describedOperations } from '../../../src/contract/operation.ts'
import { describedApp } from '../../../src/instance/describe.ts'
import { EXAMPLES, PARAMETERS, type World } from '../../http/examples.ts'
import { newWorld, onWorld } from '../../http/world.ts'
import { type TestBerth, testBerth } from '../../support/berth.ts'
import { schemaChecker } from '../../support/openapi-rules.ts'
import { connect, type McpClient, WITHOUT_TOOL } from './clients.ts'

const operations = describedOperations(await describedApp()).filter(({ id }) => !WITHOUT_TOOL.has(id))

let berth: TestBerth
let mcp: McpClient
let schemas: Map<string, object>
/** What calls name that only read. */
let untouched: World & AsyncDisposable
beforeAll(async () => {
  berth = await testBerth()
  untouched = await newWorld(berth)
  mcp = await connect(berth, 'v2')
  const { tools } = await mcp.client.listTools()
  schemas = new Map(
    tools.map(({ name, outputSchema }: { name: string; outputSchema: object }) => [name, outputSchema]),
  )
})
afterAll(async () => {
  await untouched?.[Symbol.asyncDispose]()
  await mcp[Symbol.asyncDispose]()
  await berth[Symbol.asyncDispose]()
})

test.each(operations.map((operation) => [operation.id, operation] as const))(
  '%s answers as its tool declares',
  (id, operation) =>
    onWorld(berth, untouched, operation, async (world) => {
      const filled = (name: string): string => PARAMETERS[name]?.value(world) ?? ''
      const { query, body } = EXAMPLES[id] ?? {}
      const names = [...operation.path.matchAll(/\{(\w+)\}/g)].map((match) => match[1] ?? '')
      const given = {
        ...Object.fromEntries(names.map((name) => [name, filled(name)])),
        ...query,
        ...(typeof body === 'function' ? body(filled) : body),
      }
      const tool = id.replace('.', '_')
      const result = await mcp.call(tool, given)
      expect([id, result.isError === true ? result.content : []]).toEqual([id, []])
      const check = schemaChecker().compile(schemas.get(tool) ?? false)
      check(result.structuredContent)
      expect(check.errors ?? []).toEqual([])
      expect(JSON.parse(result.content[0]?.text ?? '')).toEqual(result.structuredContent)
    }),
)

test('what one operation answers fits no other tool: the check tells answers apart', async () => {
  const { structuredContent } = await mcp.call('servers_list')
  expect(schemaChecker().compile(schemas.get('exec_run') ?? true)(structuredContent)).toBe(false)
})
