import { type Static, type TSchema, Type } from '@sinclair/typebox'
import { ScenarioText } from '../../agents/scripted/scenarios.ts'
import { API_KEY } from '../../config/values.ts'
import { base64, NO_NUL, oneOf, text, USE, used } from '../../contract/schema.ts'
import { BudgetCap, CreditsUsed, PlanOverrides } from '../../resources/accounts/model.ts'
import { AppDirectory } from '../../resources/projects/app-directory.ts'
import { ProjectSource } from '../../resources/projects/sources/model.ts'
import { Lifecycle, ProjectKind, Visibility } from '../../resources/projects/traits.ts'
import { ServerCreate, ServerSystem } from '../../resources/servers/model.ts'
import { TemplateId } from '../../resources/templates/model.ts'
import { SubscribedEvent, URL_LIMIT } from '../../resources/webhooks/model.ts'
import { FixtureFault } from '../faults/fault.ts'

/** An object of which all fields are known. */
const closed = <Fields extends Record<string, TSchema>>($id: string, fields: Fields, description?: string) =>
  Type.Object(fields, { $id, additionalProperties: false, ...(description ? { description } : {}) })

/**
 * An object with keys of the user's choice.
 *
 * @param keys names the keys, as words that follow "expected"
 */
const keyed = <Value extends TSchema>(pattern: string, value: Value, keys: string, description: string) =>
  Type.Record(Type.String({ pattern }), value, {
    additionalProperties: false,
    propertyNames: { title: keys },
    description,
  })

const NAME = '^[A-Za-z][A-Za-z0-9._-]{0,62}$'
const NAME_WORDS = 'a name of at most 63 letters, digits, ".", "_" and "-" that begins with a letter'

const reference = (description: string) => Type.String({ pattern: NAME, title: NAME_WORDS, description })
const byName = <Value extends TSchema>(value: Value, description: string) =>
  keyed(NAME, value, NAME_WORDS, description)

/** A value that is not written in the file. */
const FromEnvironment = Type.Object(
  {
    env: Type.String({
      minLength: 1,
      description: "Name of a variable of berth's own environment.",
    }),
  },
  {
    $id: 'FromEnvironment',
    additionalProperties: false,
    title: '{"env": …}',
    description: "Taken from berth's own environment, so that it does not stand in the file.",
  },
)

/**
 * A text that no message shows.
 *
 * @param title names it, as words that follow "expected"
 */
const hidden = (pattern: string, title: string) => Type.String({ pattern, title, writeOnly: true })

/** A key chosen by the user. */
export const KeyText = hidden(API_KEY.source, 'sk_live_ followed by 8 to 128 letters, digits, "_" or "-"')

/** A signing secret chosen by the user (Standard Webhooks, "Signature scheme"). */
export const WebhookSecretText = hidden(
  '^whsec_(?:[A-Za-z0-9+/]{4}){8,21}(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$',
  'whsec_ followed by 24 to 64 bytes as base64',
)

/** The value of an environment variable. */
export const VariableText = Type.String({
  maxLength: 65_536,
  pattern: NO_NUL,
  title: 'a text of at most 65536 characters, without NUL',
  writeOnly: true,
})

/** Such a text: written down, or taken from the environment. */
const textOrEnvironment = ($id: string, shape: typeof KeyText, description: string) =>
  Type.Union([shape, FromEnvironment], { $id, description })

const Key = textOrEnvironment(
  'FixtureKeyText',
  KeyText,
  'The key itself; without it, one is made. GET /_berth/fixtures tells it.',
)

const Secrets = keyed(
  '^[A-Za-z_][A-Za-z0-9_]*$',
  textOrEnvironment('FixtureVariable', VariableText, 'What the variable is set to.'),
  'a name of letters, digits and "_" that does not begin with a digit',
  'Environment variables by name. Others that were set stay.',
)

const Content = Type.Union(
  [
    Type.String({ description: 'The content itself.' }),
    closed('FixtureBytes', { base64: base64({ description: 'The bytes.' }) }, 'Bytes that are no text.'),
    closed(
      'FixtureCopy',
      { from: Type.String({ minLength: 1, description: 'Path relative to this file.' }) },
      'A copy of a file, or of a directory with all in it but .git, node_modules and .berth.',
    ),
  ],
  { $id: 'FixtureContent', title: 'a text, {"base64": …} or {"from": …}' },
)

const Files = keyed(
  '^[^\\u0000]+$',
  Content,
  'a path',
  'Files by path in the workspace; "." is the workspace itself, for the content of a directory.',
)

const Account = closed('FixtureAccount', {
  label: Type.Optional(text({ maxLength: 100 })),
  key: Type.Optional(Key),
  plan: Type.Optional(PlanOverrides),
  budget_cap: Type.Optional(BudgetCap),
  credits_used: Type.Optional(CreditsUsed),
})

const account = Type.Optional(reference('Name of an account of the files; without it, the first account.'))

const Server = closed('FixtureServer', {
  account,
  ...ServerCreate.properties,
  image: ServerSystem.properties.image,
  status: Type.Optional(
    oneOf(['running', 'sleeping'], {
      $id: 'FixtureServerStatus',
      description: 'How it stands when all is set up; by default it runs.',
    }),
  ),
  files: Type.Optional(Files),
  secrets: Type.Optional(Secrets),
})

/** The states of a project that a start can wait for. */
const AWAITED = ['ready', 'awaiting_secrets', 'failed', 'nothing'] as const

const Project = closed('FixtureProject', {
  server: Type.Optional(
    reference('Name of a server of the files; without it, a server of its own with the same name.'),
  ),
  name: Type.Optional(
    text({ minLength: 1, maxLength: 100, description: 'By default its name in this file.' }),
  ),
  description: Type.Optional(text({ maxLength: 2_000 })),
  visibility: Type.Optional(Visibility),
  lifecycle: Type.Optional(Lifecycle),
  kind: Type.Optional(ProjectKind),
  template: Type.Optional(used(TemplateId, 'The id of a template; "berth templates" lists them.')),
  source: Type.Optional(ProjectSource),
  files: Type.Optional(
    keyed(
      '^[^\\u0000]+$',
      Content,
      'a path',
      'Its code, by path in its directory, in place of template and source.',
    ),
  ),
  directory: Type.Optional(
    Type.String({
      minLength: 1,
      description:
        'A directory with its code, relative to this file, that "berth up" sends and keeps up to date. Ignore files are obeyed.',
    }),
  ),
  app_directory: Type.Optional(AppDirectory),
  secrets: Type.Optional(Secrets),
  until: Type.Optional(
    oneOf([...AWAITED], {
      $id: 'FixtureProjectState',
      description:
        'How far its bring-up goes before berth is ready; another end stops the start. By default ready.',
    }),
  ),
})

const ApiKey = closed('FixtureKey', {
  account,
  label: Type.Optional(
    text({ minLength: 1, maxLength: 40, description: 'By default its name in this file.' }),
  ),
  key: Type.Optional(Key),
  servers: Type.Optional(
    Type.Array(reference('Name of a server.'), { description: 'All that it reaches.', uniqueItems: true }),
  ),
  projects: Type.Optional(
    Type.Array(reference('Name of a project.'), { description: 'All that it reaches.', uniqueItems: true }),
  ),
})

const Webhook = closed('FixtureWebhook', {
  account,
  url: Type.Optional(
    Type.String({ minLength: 1, maxLength: URL_LIMIT, description: 'Where to send the events.' }),
  ),
  inbox: Type.Optional(
    Type.String({
      pattern: '^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$',
      title: 'a name of at most 64 letters, digits, ".", "_" and "-" that begins with a letter or a digit',
      description: 'An inbox of this instance, in place of a URL; needs --allow-local-webhooks.',
    }),
  ),
  events: Type.Optional(
    Type.Array(SubscribedEvent, { description: 'Left out or empty: all.', uniqueItems: true }),
  ),
  secret: Type.Optional(
    textOrEnvironment(
      'FixtureSigningSecret',
      WebhookSecretText,
      'The signing secret; without it, one is made. GET /_berth/fixtures tells it.',
    ),
  ),
})

const SecretsOf = closed('FixtureSecrets', {
  server: Type.Optional(reference('Name of a server.')),
  project: Type.Optional(reference('Name of a project, in place of a server.')),
  values: Secrets,
})

const Clock = closed(
  'FixtureClock',
  {
    freeze: Type.Optional(Type.Boolean({ description: 'true: the clock stands until it is moved.' })),
    set: Type.Optional(
      Type.String({ description: 'An ISO 8601 time that it shows before anything is made.' }),
    ),
    advance: Type.Optional(
      Type.String({ description: 'A duration such as 2h that passes when everything is there.' }),
    ),
  },
  'What POST /_berth/clock takes.',
)

/** The content of a fixtures file: the schema that checks files and that editors use. */
export const FixturesFile = closed(
  'FixturesFile',
  {
    $schema: Type.Optional(Type.String({ description: 'Tells editors where the schema of this file is.' })),
    clock: Type.Optional(Clock),
    accounts: Type.Optional(byName(Account, 'Accounts by name; "default" is the first one.')),
    servers: Type.Optional(byName(Server, 'Servers by name.')),
    projects: Type.Optional(byName(Project, 'Projects by name.')),
    secrets: Type.Optional(
      Type.Array(SecretsOf, {
        description: 'Environment variables of servers and projects, apart from these.',
      }),
    ),
    keys: Type.Optional(byName(ApiKey, 'API keys by name.')),
    webhooks: Type.Optional(byName(Webhook, 'Subscriptions to events by name.')),
    scenarios: Type.Optional(
      Type.Array(ScenarioText, {
        maxItems: 1_000,
        description: 'What the scripted agent does about which goals.',
      }),
    ),
    faults: Type.Optional(
      Type.Array(FixtureFault, { maxItems: 1_000, description: 'What goes wrong with which requests.' }),
    ),
  },
  'What there is when berth starts.',
)

/** A fixtures file and its entries, as they are written. */
export type FixturesFile = Static<typeof FixturesFile>
export type AccountInput = Static<typeof Account>
export type ServerInput = Static<typeof Server>
export type ProjectInput = Static<typeof Project>
export type KeyInput = Static<typeof ApiKey>
export type WebhookInput = Static<typeof Webhook>
export type ContentInput = Static<typeof Content>

/**
 * Returns the JSON Schema of fixtures files (draft 7, which editors read). It is the schema that files are checked
 * by.
 */
export const fixturesSchema = (): Record<string, unknown> => ({
  $schema: 'http://json-schema.org/draft-07/schema#',
  title: 'A fixtures file of berth',
  // Removes the library's own properties, and the names that the schemas have in documents of the APIs.
  ...(JSON.parse(JSON.stringify(FixturesFile, (_, value) => withoutName(value))) as object),
})

/** Returns a schema without its name, and with the description of its use as its own. */
function withoutName(schema: unknown): unknown {
  if (typeof schema !== 'object' || schema === null || Array.isArray(schema)) return schema
  const { $id: _, [USE]: use, ...rest } = schema as Record<string, unknown>
  return use === undefined ? rest : { ...rest, description: use }
}
