import { describe, expect, test } from 'bun:test'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { describeApi, describeControl } from '../../src/instance/describe.ts'
import { berthForTests } from '../support/berth.ts'

/*
 * A client that obeys the documents is not told 400, and what they refuse berth refuses: each rule of a value with values
 * at both of its sides. The ids in the paths are of nothing, so that what is well formed is 404 and changes nothing.
 */

interface Rule {
  /** Method and path, as in the document. */
  readonly request: string
  /** Makes the body, the query, or the last part of the path of a value. */
  readonly in: 'body' | 'query' | 'path'
  readonly of: (value: unknown) => unknown
  /** Whether berth finds the server and the execution first, so that what it refuses is sent to ones that there are. */
  readonly isLate?: true
  readonly takes: readonly unknown[]
  readonly refuses: readonly unknown[]
}

const variables = (count: number) =>
  Object.fromEntries(Array.from({ length: count }, (_, index) => [`NAME_${index}`, 'x']))
const VARIABLES = {
  takes: [{}, { A: '' }, variables(1_000)],
  refuses: [variables(1_001), { '1A': 'x' }, { A: 'a\0b' }],
}
const BASE64 = {
  takes: ['', 'YQ==', 'YWI=', 'YWJj'],
  refuses: ['Y', 'YQ', 'YQ=', 'YR==', 'YWJj\n', '_-A=', 'a b='],
}
const INBOX = { takes: ['a', 'A.b_c-1', 'x'.repeat(64)], refuses: ['.a', '-a', 'a b', 'ä', 'x'.repeat(65)] }
const STATUS = {
  takes: ['404', '4xx'],
  refuses: ['abc', '600', '4x', ''],
}
const OPERATION = { takes: ['exec.run', 'servers.list'], refuses: ['exec.rum', '', 'control.clock.read'] }
const TEMPLATE = { takes: ['static-site', 'python-api'], refuses: ['none', '', 'Static-Site'] }
const field = (name: string) => (value: unknown) => ({ [name]: value })
const headers = (count: number) =>
  Object.fromEntries(Array.from({ length: count }, (_, index) => [`x-${index}`, 'x']))
const itself = (value: unknown) => value

const RULES: readonly Rule[] = [
  {
    request: 'POST /servers/{serverId}/exec',
    in: 'body',
    of: (env) => ({ command: 'true', env }),
    ...VARIABLES,
  },
  { request: 'POST /servers/{serverId}/terminals', in: 'body', of: field('env'), ...VARIABLES },
  { request: 'POST /servers/{serverId}/projects', in: 'body', of: field('env'), ...VARIABLES },
  {
    request: 'PUT /secrets',
    in: 'body',
    of: (secrets) => ({ server_id: 'srv_none', secrets }),
    ...VARIABLES,
  },
  { request: 'PUT /projects/{projectId}/secrets', in: 'body', of: field('secrets'), ...VARIABLES },
  {
    request: 'POST /servers/{serverId}/executions/{executionId}/input',
    in: 'body',
    of: field('base64'),
    ...BASE64,
  },
  {
    request: 'PUT /servers/{serverId}/files',
    in: 'body',
    of: (content) => ({ path: 'a', content, encoding: 'base64' }),
    ...BASE64,
  },
  {
    request: 'PUT /servers/{serverId}/files',
    in: 'body',
    of: (path) => ({ path, content: 'not base64', encoding: 'utf-8' }),
    takes: ['a', '/workspace/a b', 'ä/ö'],
    refuses: ['', 'a\0b', 'x'.repeat(4_096)],
  },
  {
    request: 'POST /servers/{serverId}/projects',
    in: 'body',
    of: (data) => ({ source: { type: 'archive', data } }),
    ...BASE64,
  },
  {
    request: 'POST /servers/{serverId}/exec',
    in: 'body',
    of: (fields) => ({ command: 'true', ...(fields as object) }),
    takes: [{}, { detach: true, openStdin: true }, { detach: true, openStdin: false }],
    refuses: [{ openStdin: true }, { detach: false, openStdin: true }, { openStdin: false }],
  },
  {
    request: 'POST /servers/{serverId}/executions/{executionId}/input',
    in: 'body',
    of: itself,
    isLate: true,
    takes: [{ text: '' }, { base64: 'YQ==', end: false }, { end: true }, { text: 'a', end: true }],
    refuses: [{}, { end: false }, { text: 'a', base64: 'YQ==' }],
  },
  {
    request: 'POST /servers/{serverId}/projects',
    in: 'body',
    of: (ref) => ({ source: { type: 'git', url: 'https://example.com/a.git', ref } }),
    takes: ['main', 'v1.0', 'feature/a-b', 'refs/tags/v1', 'a'.repeat(40), 'ä'],
    refuses: [
      '',
      '-a',
      '/a',
      'a/',
      'a.',
      'a..b',
      'a b',
      'a~1',
      'a@{1}',
      '@',
      '.a',
      'a/.b',
      'a.lock',
      'a\u3000b',
    ],
  },
  {
    request: 'POST /servers/{serverId}/projects',
    in: 'body',
    of: (fields) => ({ source: { type: 'archive', ...(fields as object) } }),
    isLate: true,
    takes: [],
    refuses: [{ url: 'https://example.com/a.zip', data: 'YQ==' }],
  },
  {
    request: 'POST /_berth/events',
    in: 'body',
    of: (data) => ({ event: 'task.completed', account_id: 'acct_none', data }),
    takes: [],
    refuses: [{ event: 'x' }, { created_at: 'x' }],
  },
  {
    request: 'POST /_berth/servers/{serverId}/fault',
    in: 'body',
    of: (fields) => ({ kind: 'network', ...(fields as object) }),
    takes: [{ offline: true }, { loss: 0.1 }, { latency_ms: 1, jitter_ms: 0 }],
    refuses: [{ offline: 1 }, { loss: 2 }],
  },
  {
    request: 'POST /_berth/faults',
    in: 'body',
    of: (match) => ({ match, effect: { disconnect: true }, probability: 0 }),
    takes: [{}, { path: '/servers/*' }, { path: '/_berthx' }, { deliveries: {} }, { method: 'GET' }],
    refuses: [
      { path: '/_berth' },
      { path: '/_berth/clock' },
      { path: 'servers' },
      { deliveries: {}, path: '/x' },
      { deliveries: {}, client: 'cli' },
    ],
  },
  {
    request: 'POST /_berth/faults',
    in: 'body',
    of: (fields) => ({ match: {}, probability: 0, ...(fields as object) }),
    takes: [
      { effect: { respond: { status: 204, body: '' } } },
      { effect: { respond: { status: 200, body: 'x', headers: { 'x-connection': 'a' } } } },
      { effect: { error: { status: 500, headers: headers(50) } } },
      { effect: { truncate: { bytes: 1 } } },
      { match: { deliveries: {} }, effect: { lose_response: true } },
    ],
    refuses: [
      { effect: { respond: { status: 204, body: 'x' } } },
      { effect: { respond: { status: 200, headers: { 'Content-Length': '1' } } } },
      { effect: { error: { status: 500, headers: { connection: 'close' } } } },
      { effect: { error: { status: 500, headers: headers(51) } } },
      { match: { deliveries: {} }, effect: { truncate: { bytes: 1 } } },
      { match: { deliveries: {} }, effect: { backend: 'fail' } },
    ],
  },
  { request: 'POST /servers/{serverId}/projects', in: 'body', of: field('template'), ...TEMPLATE },
  {
    request: 'POST /servers/{serverId}/projects',
    in: 'body',
    of: (template) => ({ source: { type: 'template', template } }),
    ...TEMPLATE,
  },
  {
    request: 'POST /_berth/clock',
    in: 'body',
    of: field('set'),
    takes: ['2030-01-01', '2032-02-29T23:59:59.123+05:30', '2096-02-29T00:00Z', '1970-01-01T00:00:00Z'],
    refuses: [
      '',
      'soon',
      '2030-02-29',
      '2100-02-29T00:00:00Z',
      '2030-04-31',
      '2030-13-01',
      '2030-01-01T24:00Z',
      '2030-01-01T10:00:00',
      '2030-01-01T10:00:61Z',
      '2030-01-01T10:00:00+24:00',
      '1969-12-31T23:59:59Z',
      '10000-01-01T00:00:00Z',
    ],
  },
  {
    request: 'POST /_berth/clock',
    in: 'body',
    of: itself,
    takes: [{ freeze: true, advance: '1s' }, { freeze: false }, { reset: true }],
    refuses: [
      {},
      { advance: '1s', set: '2030-01-01' },
      { reset: true, freeze: true },
      { reset: true, advance: '1s' },
    ],
  },
  {
    request: 'POST /_berth/sign-in-links',
    in: 'body',
    of: (return_to) => ({ account_id: 'acct_none', return_to }),
    takes: ['/', '/access', '/docs/?a=//b#c', '/a/../b', `/${'x'.repeat(7_999)}`],
    refuses: [
      '',
      'access',
      '//evil.example',
      '/.//evil.example',
      '/a\\b',
      '/ä',
      '/a b',
      `/${'x'.repeat(8_000)}`,
    ],
  },
  ...(['GET', 'DELETE'] as const).map(
    (method): Rule => ({ request: `${method} /_berth/inbox/{name}`, in: 'path', of: itself, ...INBOX }),
  ),
  { request: 'POST /_berth/inbox/{name}', in: 'path', of: itself, ...INBOX },
  {
    request: 'POST /_berth/inbox/{name}',
    in: 'query',
    of: field('respond'),
    takes: ['200', '500,204', '500 , 204'],
    refuses: ['', '99', '600', '200,', '200;500'],
  },
  {
    request: 'POST /_berth/inbox/{name}',
    in: 'query',
    of: field('delay_ms'),
    takes: [0, 1],
    refuses: [-1, 1.5, 60_001, 'soon'],
  },
  {
    request: 'GET /_berth/wait',
    in: 'query',
    of: (inbox) => ({ inbox, timeout_ms: 0 }),
    ...INBOX,
  },
  {
    request: 'GET /_berth/wait',
    in: 'query',
    of: (until) => ({ task: 'task_none', until }),
    takes: ['held', 'completed,failed', 'running , held'],
    refuses: ['', 'done', 'completed,', 'completed failed'],
  },
  ...['/_berth/requests', '/_berth/requests/errors'].flatMap((path): Rule[] => [
    { request: `GET ${path}`, in: 'query', of: field('status'), ...STATUS },
    { request: `GET ${path}`, in: 'query', of: field('operation'), ...OPERATION },
  ]),
]

const berth = await berthForTests()
const server = await berth.server()
const detached = { command: 'cat', detach: true, openStdin: true }
const execution = (await berth.call('POST', `/servers/${server}/exec`, detached)).body.execution.id
const documents = [await describeApi(), await describeControl()]

const shown = (value: unknown): string => {
  const text = JSON.stringify(value)
  return text.length > 60 ? `${text.slice(0, 57)}…` : text
}

/** Reports whether the document takes a value at its place in a request. */
function isDeclared({ request, in: place, of }: Rule, value: unknown): boolean {
  const [method = '', path = ''] = request.split(' ')
  const document = documents.find(({ paths }) => paths[path]?.[method.toLowerCase()] !== undefined)
  const operation = document?.paths[path]?.[method.toLowerCase()]
  if (document === undefined || operation === undefined) throw new Error(`No document has ${request}.`)
  const ajv = new Ajv2020({ strict: false, validateFormats: true })
  // The way of formats of the registry of OpenAPI.
  ajv.addFormat('byte', (text: string) => Buffer.from(text, 'base64').toString('base64') === text)
  for (const format of ['uri', 'date-time', 'double', 'int64']) ajv.addFormat(format, true)
  ajv.addSchema({ $id: 'document', components: document.components })
  const resolved = (schema: unknown) =>
    JSON.parse(JSON.stringify(schema).replaceAll('"#/components', '"document#/components'))
  if (place === 'body') {
    return ajv.validate(resolved(operation.requestBody?.content['application/json']?.schema), of(value))
  }
  const parameters = (operation.parameters ?? []).filter((one) => 'in' in one)
  const given = place === 'query' ? Object.entries(of(value) as object) : [['name', value] as const]
  return given.every(([name, one]) => {
    const parameter = parameters.find((other) => other.in === place && other.name === name)
    if (parameter === undefined) throw new Error(`The document of ${request} has no ${name}.`)
    return ajv.validate(resolved(parameter.schema), one)
  })
}

/** Returns the status of a request with a value at its place. */
async function statusOf({ request, in: place, of }: Rule, value: unknown, isReal = false): Promise<number> {
  const [method = '', template = ''] = request.split(' ')
  const path = isReal ? template.replace('{serverId}', server).replace('{executionId}', execution) : template
  const parts = place === 'path' ? path.replace('{name}', encodeURIComponent(String(value))) : path
  const query = place === 'query' ? `?${new URLSearchParams(of(value) as Record<string, string>)}` : ''
  const credential = path.startsWith('/_berth') ? berth.info.admin_token : berth.info.api_key
  const { status } = await berth.call(
    method,
    `${parts.replaceAll(/\{\w+\}/g, 'none')}${query}`,
    place === 'body' ? of(value) : undefined,
    { authorization: `Bearer ${credential}` },
  )
  return status
}

describe.each(RULES.map((rule) => [`${rule.request}, ${rule.in}: ${shown(rule.of('…'))}`, rule] as const))(
  '%s',
  (_, rule) => {
    test('takes what the document takes', async () => {
      for (const value of rule.takes) {
        const status = await statusOf(rule, value)
        expect([shown(value), isDeclared(rule, value), status === 400]).toEqual([shown(value), true, false])
      }
    })

    test('refuses what the document refuses', async () => {
      for (const value of rule.refuses) {
        const status = await statusOf(rule, value, rule.isLate)
        expect([shown(value), isDeclared(rule, value), status]).toEqual([shown(value), false, 400])
      }
    })
  },
)

test('8 MiB of base64 are checked at once', async () => {
  const base64 = Buffer.alloc(6 * 1024 * 1024, 7).toString('base64')
  const began = performance.now()
  const { status } = await berth.call('POST', '/servers/none/executions/none/input', { base64 })
  expect(status).toBe(404)
  // A pattern of groups takes ten seconds.
  expect(performance.now() - began).toBeLessThan(5_000)
})
