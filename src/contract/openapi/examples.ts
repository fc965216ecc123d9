import type { Schema } from './model.ts'

/** Creation time of everything in examples. */
const AT = '2030-01-01T12:00:00.000Z'

const idOf = (prefix: string): string => `${prefix}_01j00000000000000000000000`

/** Ids by the name of their shape. */
const IDS: Readonly<Record<string, string>> = {
  Account: idOf('acct'),
  CreatedAccount: idOf('acct'),
  ApiKey: idOf('key'),
  CreatedApiKey: idOf('key'),
  ApiKeyScope: idOf('key'),
  Build: idOf('bld'),
  Delivery: idOf('dlv'),
  Deployment: idOf('dep'),
  EmittedEvent: idOf('evt'),
  Fault: idOf('flt'),
  DeletedFault: idOf('flt'),
  InboxEntry: idOf('msg'),
  JournalEntry: idOf('req'),
  Program: idOf('grant'),
  Browser: idOf('ses'),
  Project: idOf('prj'),
  Task: idOf('task'),
  Webhook: idOf('wh'),
  CreatedWebhook: idOf('wh'),
}

/** Ids by noun, for operations whose shape has no name in `IDS`. */
const NOUN_IDS: Readonly<Record<string, string>> = {
  accounts: idOf('acct'),
  inbox: idOf('msg'),
  browsers: idOf('ses'),
  keys: idOf('key'),
  programs: idOf('grant'),
  projects: idOf('prj'),
  webhooks: idOf('wh'),
}

/** Values by field name: a field has one meaning in all shapes. A schema's own `examples` take precedence. */
const FIELDS: Readonly<Record<string, unknown>> = {
  account_id: idOf('acct'),
  active: true,
  advance: '1h',
  allowed_project_ids: [idOf('prj')],
  allowed_server_ids: [idOf('srv')],
  answer: 'Use SQLite.',
  api_key: 'sk_live_example_key_of_an_account',
  api_key_id: idOf('key'),
  as: 'name',
  artifacts: ['index.html'],
  ask: 'Which database?',
  attempt: 1,
  budget_cap: 500,
  build_id: idOf('bld'),
  bytes: 4096,
  call: 'call_1',
  code: 'backend_error',
  command: 'python3 app.py',
  compute: 'local',
  content: 'print("hello")\n',
  created_at: AT,
  credits_used: 12.5,
  creditsUsed: 12.5,
  cwd: 'app',
  data: { note: 'shown as it was sent' },
  cpu: 'limited',
  delay_ms: 500,
  description: 'A page of notes.',
  disk: 'limited',
  event: 'task.created',
  event_id: idOf('evt'),
  exitCode: 0,
  exit_code: 1,
  for_ms: 5000,
  glob: '*notes*',
  goal: 'Add a page that lists all notes.',
  headers: { 'content-type': 'application/json' },
  inbox: 'orders',
  init_run_id: idOf('irun'),
  inputTokens: 1200,
  isolation: 'bubblewrap',
  key: 'sk_live_example_key_of_an_account',
  keys: ['DATABASE_URL'],
  label: 'CI',
  live: true,
  masked: 'sk_live_…7f3a',
  match: 'notes',
  matched: true,
  memory: 'limited',
  message: 'The compute backend failed.',
  method: 'POST',
  month: '2030-01',
  ms: 12,
  name: 'notes',
  network: 'shared',
  operation: 'exec.run',
  outputTokens: 300,
  path: 'app/main.py',
  processes: 'limited',
  probability: 1,
  project_id: idOf('prj'),
  publicUrl: 'https://notes.example.com/',
  question: 'Which database?',
  ready: true,
  reason: 'no signature',
  ref: 'main',
  regex: '^Add',
  request_id: idOf('req'),
  restored: 'notes',
  result: 'The page lists all notes.',
  return_to: '/servers',
  run: 'npm test',
  say: 'Done.',
  secret: 'whsec_ZXhhbXBsZS1zZWNyZXQtb2YtYS13ZWJob29r',
  seq: 1,
  server_id: idOf('srv'),
  serverId: idOf('srv'),
  set: '2030-02-01T00:00:00Z',
  slug: 'notes',
  source: 'start',
  stderr: '',
  stdin: 'yes\n',
  stdout: 'hello\n',
  storageUsedGb: 0.25,
  stream: 'stdout',
  task: 'A page of notes.',
  task_id: idOf('task'),
  template: 'blank',
  text: 'Listening on port 4800',
  timeout: '30s',
  timeoutMs: 30_000,
  took_ms: 12,
  tool: 'run',
  uptime_ms: 60_000,
  ephemeral: false,
  port_taken: true,
  sha256: 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855',
  url: 'https://notes.example.com/',
  verified: true,
  version: '1.0.0',
  wait: '2s',
  webhook_id: idOf('wh'),
}

/** Values of fields with another meaning in one shape, by shape and field. */
const SHAPE_FIELDS: Readonly<Record<string, unknown>> = {
  'Browser.name': 'Firefox on Linux',
  'BuildStep.label': 'Plan',
  'DeliveryAttempt.status': 200,
  'DeliveryAttempt.body': 'ok',
  'FaultEffect.status': 502,
  'FaultMatch.path': '/servers/*/exec',
  'FileList.files': ['app/main.py', 'README.md'],
  'InboxEntry.query': 'from=shop',
  'InboxEntry.status': 200,
  'InboxEntry.body': '{"paid":true}',
  'InboxEntry.json': { paid: true },
  'JournalEntry.body': { command: 'python3 app.py' },
  'JournalEntry.path': '/servers',
  'JournalEntry.status': 201,
  'Program.name': 'My editor',
  'ProjectTemplate.id': 'blank',
  'ProjectTemplate.label': 'Blank',
  'Scenario.source': 'api',
}

/**
 * Makes examples of schemas: a schema's own `examples`, a constant, the first choice, or the field's value from the
 * tables. Objects get their required fields, or the first one if none is required.
 */
export class Examples {
  /**
   * @param schemas the shared schemas by name, for references
   */
  constructor(readonly schemas: Readonly<Record<string, Schema>>) {}

  /** Returns a value that fits a schema of an operation. The operation's noun determines the ids. */
  of(schema: Schema, operationId: string): unknown {
    const noun = operationId.split('.').at(-2) ?? ''
    return this.#value(schema, { shape: '', field: '', id: NOUN_IDS[noun] ?? idOf('srv') })
  }

  #value(schema: Schema, position: Position): unknown {
    const { $ref, examples, enum: choices, anyOf, oneOf = anyOf } = schema as Keywords
    if (typeof $ref === 'string') {
      const shape = $ref.split('/').at(-1) ?? ''
      return this.#value(this.schemas[shape] ?? {}, { ...position, shape })
    }
    if (examples) return examples[0]
    if (choices) return choices[0]
    const known =
      SHAPE_FIELDS[`${position.shape}.${position.field}`] ?? ownId(position) ?? FIELDS[position.field]
    if (known !== undefined && fitsType(known, schema)) return known
    if (oneOf) return this.#value(oneOf.find(({ type }) => type !== 'null') ?? {}, position)
    return this.#plain(schema, position)
  }

  #plain(schema: Schema, position: Position): unknown {
    const {
      properties = {},
      additionalProperties,
      items,
      format,
      minimum = 1,
      required = [],
    } = schema as Keywords
    switch (typesOf(schema)[0]) {
      case 'string':
        return format === 'date-time' ? AT : 'info'
      case 'integer':
      case 'number':
        return Math.max(minimum, 1)
      case 'boolean':
        return false
      case 'array':
        return items ? [this.#value(items, position)] : []
      case 'object': {
        const names = required.length > 0 ? required : Object.keys(properties).slice(0, 1)
        const fields = names.map((field) => [
          field,
          this.#value(properties[field] ?? {}, { ...position, field }),
        ])
        if (fields.length > 0 || typeof additionalProperties !== 'object') return Object.fromEntries(fields)
        return { LOG_LEVEL: this.#value(additionalProperties, { ...position, field: '' }) }
      }
      default:
        return {}
    }
  }
}

/** The position of a value: the name of its shape, its field, and the id of the operation's resource. */
interface Position {
  readonly shape: string
  readonly field: string
  readonly id: string
}

/** The keywords of JSON Schema that examples respect. */
interface Keywords {
  $ref?: string
  examples?: unknown[]
  enum?: unknown[]
  anyOf?: Schema[]
  oneOf?: Schema[]
  properties?: Record<string, Schema>
  required?: string[]
  additionalProperties?: Schema | boolean
  items?: Schema
  format?: string
  minimum?: number
}

const ownId = ({ shape, field, id }: Position): string | undefined =>
  field === 'id' ? (IDS[shape] ?? id) : undefined

const typesOf = ({ type }: Schema): unknown[] => (Array.isArray(type) ? type : [type])

/** Reports whether a value has the type of a schema. Without a type, any value has. */
function fitsType(value: unknown, schema: Schema): boolean {
  const { anyOf } = schema as Keywords
  if (anyOf) return anyOf.some((one) => !('$ref' in one) && fitsType(value, one))
  const [type] = typesOf(schema)
  if (type === undefined) return !('$ref' in schema)
  if (type === 'integer') return Number.isInteger(value)
  if (Array.isArray(value))
    return type === 'array' && value.every((one) => fitsType(one, (schema as Keywords).items ?? {}))
  return typeof value === type
}
