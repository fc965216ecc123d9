import { describe, expect, test } from 'bun:test'
import { Ajv } from 'ajv'
import type { Schema } from '../../../src/contract/openapi/model.ts'
import { describedOperations } from '../../../src/contract/operation.ts'
import { API_OPERATION_IDS } from '../../../src/contract/operations.ts'
import { describeApi, describedApp } from '../../../src/instance/describe.ts'
import { isFollowable } from '../../../src/resources/mcp/follow.ts'
import { type OperationTool, toolsOf } from '../../../src/resources/mcp/tool.ts'
import { schemaChecker } from '../../support/openapi-rules.ts'
import { WITHOUT_TOOL } from './clients.ts'

const document = await describeApi()
const tools = toolsOf(describedOperations(await describedApp()), document)
const schemas = tools.flatMap(({ tool }) => [
  [`input of ${tool.name}`, tool.inputSchema as Schema] as const,
  [`output of ${tool.name}`, (tool.outputSchema ?? {}) as Schema] as const,
])

describe('the tools', () => {
  test('are one for each operation but WebSockets and streams of bytes, named after it', () => {
    const calls = API_OPERATION_IDS.filter((id) => !WITHOUT_TOOL.has(id))
    expect(tools.map(({ id }) => id).sort()).toEqual([...calls].sort())
    for (const { id, tool } of tools) expect(tool.name).toBe(id.replace('.', '_'))
    // What every host and model takes as a name.
    for (const { tool } of tools) expect(tool.name).toMatch(/^[A-Za-z0-9_-]{1,64}$/)
  })

  test('each says what it does', () => {
    for (const { tool } of tools) {
      expect(tool.title).toBeTruthy()
      expect(tool.description).toBeTruthy()
      // A model is not to read of headers and statuses, which it cannot send or see.
      expect(tool.description).not.toMatch(/Accept:|\b20\d\b|undefined/)
    }
  })

  test('what a description speaks of is there: tools, arguments, fields of answers, values', () => {
    const known = new Set([
      ...tools.map(({ tool }) => tool.name),
      ...schemas.flatMap(([, one]) => wordsOf(one)),
    ])
    for (const { tool } of tools) {
      const description = tool.description?.replaceAll('node_modules', '') ?? ''
      for (const [word] of description.matchAll(/\b[a-zA-Z]+_[a-zA-Z]+\b|(?<=`)[a-z]+(?=`)/g)) {
        expect([tool.name, word, known.has(word)]).toEqual([tool.name, word, true])
      }
    }
    expect(toolOf('servers.update').tool.description).not.toContain('tier')
  })

  test('a model learns how a project comes to a URL, and where its code lies', () => {
    const { description, inputSchema } = toolOf('projects.create').tool
    expect(description).toContain('`visibility` is "public"')
    expect(description).toContain('`projects/SLUG`')
    expect(inputSchema.properties?.visibility).toHaveProperty(
      'description',
      'Only a public project has a URL.',
    )
  })

  test.each(schemas)('the %s is plain JSON Schema 2020-12 that stands alone', (_, schema) => {
    expect(schema.type).toBe('object')
    // Nothing but JSON, and nothing of the validator's own dialect.
    expect(JSON.parse(JSON.stringify(schema))).toEqual(schema as object)
    for (const [keyword, value] of keywordsOf(schema)) {
      expect(['$ref', '$id', '$schema', 'nullable', 'default', 'elysiaMeta']).not.toContain(keyword)
      expect([keyword, value]).not.toEqual(['type', 'Date'])
    }
    expect(() => schemaChecker().compile(schema)).not.toThrow()
    // Clients of 2025 check with a validator of draft 7.
    expect(() => new Ajv({ strict: false, validateFormats: false }).compile(schema)).not.toThrow()
  })

  test('every argument of an operation has its place: path, query and body share no name', () => {
    for (const { tool, pathNames, queryNames, id } of tools) {
      const names = Object.keys(tool.inputSchema.properties ?? {})
      const described = Object.values(document.paths)
        .flatMap((methods) => Object.values(methods))
        .find(({ operationId }) => operationId === id)
      const { schema } = described?.requestBody?.content['application/json'] ?? {}
      const name = String(schema?.$ref ?? '').replace('#/components/schemas/', '')
      const body = Object.keys(document.components.schemas[name]?.properties ?? schema?.properties ?? {})
      const own = isFollowable(id) ? ['follow'] : []
      expect(names).toEqual([...pathNames, ...queryNames, ...body, ...own])
      expect(new Set(names).size).toBe(names.length)
    }
  })

  test('two arguments of one name are refused when the list is made', () => {
    const { all } = operationIndexOf('exec.run')
    const doubled = structuredClone(document)
    const operation = doubled.paths['/servers/{serverId}/exec']?.post
    operation?.parameters?.push({ name: 'command', in: 'query', schema: { type: 'string' } })
    expect(() => toolsOf(all, doubled)).toThrow('exec.run has two arguments "command"')
  })

  test('what is required by the path, the query and the body is required of a call', () => {
    expect(toolOf('exec.run').tool.inputSchema.required).toEqual(['serverId', 'command'])
    expect(toolOf('files.delete').tool.inputSchema.required).toEqual(['serverId', 'path'])
    expect(toolOf('servers.create').tool.inputSchema.required).toBeUndefined()
    expect(toolOf('servers.list').tool.inputSchema).toEqual({
      type: 'object',
      properties: {},
      additionalProperties: false,
    })
  })

  test('only what comes to an end can be followed', () => {
    const followed = tools.filter(({ tool }) => 'follow' in (tool.inputSchema.properties ?? {}))
    expect(followed.map(({ id }) => id)).toEqual([
      'executions.output',
      'deployments.logs',
      'tasks.events',
      'builds.logs',
      'projects.get',
      'projects.init',
    ])
  })

  test('those that need the whole account are known as such', () => {
    expect(tools.filter(({ accountLevel }) => accountLevel).map(({ id }) => id)).toEqual([
      'servers.create',
      'usage.account',
      'keys.list',
      'keys.create',
      'keys.update',
      'keys.delete',
      'programs.list',
      'programs.delete',
      'browsers.list',
      'browsers.delete',
      'webhooks.list',
      'webhooks.create',
      'webhooks.enable',
      'webhooks.delete',
    ])
  })

  test('each says whether it reads, destroys, may be repeated, and reaches out', () => {
    const hintsOf = (id: string): string[] =>
      Object.entries(toolOf(id).tool.annotations ?? {}).flatMap(([name, value]) =>
        value === true ? [name] : [],
      )
    expect(hintsOf('servers.list').sort()).toEqual(['idempotentHint', 'readOnlyHint'])
    expect(hintsOf('servers.create')).toEqual([])
    expect(hintsOf('servers.delete').sort()).toEqual(['destructiveHint', 'idempotentHint'])
    expect(hintsOf('exec.run').sort()).toEqual(['destructiveHint', 'openWorldHint'])
  })
})

/** The names of a schema's fields, at any depth, and its values. */
function wordsOf(schema: unknown): string[] {
  if (Array.isArray(schema)) return schema.flatMap(wordsOf)
  if (typeof schema !== 'object' || schema === null) return []
  const { properties = {}, enum: values = [] } = schema as { properties?: object; enum?: string[] }
  return [...Object.keys(properties), ...values, ...Object.values(schema).flatMap(wordsOf)]
}

function toolOf(id: string): OperationTool {
  const found = tools.find((one) => one.id === id)
  if (!found) throw new Error(`no tool for ${id}`)
  return found
}

const all = describedOperations(await describedApp())
const operationIndexOf = (id: string) => ({ all: all.filter((one) => one.id === id) })

/** All keywords of a schema and of those in it, with their values; names of fields are not keywords. */
function keywordsOf(schema: object): [string, unknown][] {
  return Object.entries(schema).flatMap(([keyword, value]): [string, unknown][] => {
    const nested =
      keyword === 'properties'
        ? Object.values(value as object)
        : Array.isArray(value)
          ? value
          : typeof value === 'object'
            ? [value]
            : []
    return [[keyword, value], ...nested.filter((one) => typeof one === 'object' && one).flatMap(keywordsOf)]
  })
}
