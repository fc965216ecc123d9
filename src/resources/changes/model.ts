import type { TProperties } from '@sinclair/typebox'
import { type Static, type TSchema, t } from 'elysia'
import { Browser, Program } from '../accounts/access-model.ts'
import { Account } from '../accounts/model.ts'
import { Build } from '../builds/model.ts'
import { Deployment } from '../deployments/model.ts'
import { Execution } from '../exec/model.ts'
import { ApiKey } from '../keys/model.ts'
import { Project } from '../projects/model.ts'
import { ProjectSecrets, ServerSecrets } from '../secrets/model.ts'
import { Server } from '../servers/model.ts'
import { Task } from '../tasks/model.ts'
import { Terminal } from '../terminals/model.ts'
import { Webhook } from '../webhooks/model.ts'
import type { ChangeMessage, StreamSignal } from './stream.ts'
import type { AccountChangeType } from './types.ts'

/** The objects that `GET /changes` sends, by the type of their messages. */
const OBJECTS = {
  server: Server,
  project: Project,
  deployment: Deployment,
  task: Task,
  build: Build,
  terminal: Terminal,
  execution: Execution,
  secret: t.Union([ServerSecrets, ProjectSecrets], { $id: 'SecretNames' }),
  key: ApiKey,
  webhook: Webhook,
  program: Program,
  browser: Browser,
  account: Account,
} satisfies Record<AccountChangeType, TSchema>

const onServer = { server_id: t.String({ description: 'The server that the object lies on.' }) }

/** What the messages about objects of a type have in addition to, or in place of, the fields of all. */
const FIELDS: Partial<Record<AccountChangeType, TProperties>> = {
  project: onServer,
  deployment: {
    ...onServer,
    id: t.String({ description: 'That of its server, which has one deployment at most.' }),
  },
  task: onServer,
  build: onServer,
  terminal: onServer,
  execution: onServer,
  secret: {
    ...onServer,
    id: t.String({ description: 'That of the server, or of the project, that the variables belong to.' }),
  },
}

/** The objects that `GET /changes` sends, by the type of their messages, as the reader of the stream sees them. */
export type ChangedObjects = { [Type in AccountChangeType]: Static<(typeof OBJECTS)[Type]> }

/** A message of `GET /changes` about an object. */
type AccountChange<Type extends AccountChangeType = AccountChangeType> = {
  [Each in Type]: ChangeMessage<Each> & { readonly value: ChangedObjects[Each] | null }
}[Type]

/** A message of `GET /changes`. */
export type AccountChangeMessage = AccountChange | StreamSignal

/** Returns the shape of the messages of one type: `local_webhooks` is `LocalWebhooksChange`. */
const messageOf = (type: string, fields: TProperties) => {
  const words = type.split('_').map((word) => word.charAt(0).toUpperCase() + word.slice(1))
  return t.Object({ type: t.Literal(type), ...fields }, { $id: `${words.join('')}Change` })
}

/**
 * Returns the shape of the messages of a stream of changes, for documents.
 *
 * @param signals the types of the messages without an object
 * @param objects the objects by the type of their messages
 * @param fields what the messages about the objects of a type have in addition to `id` and `value`, or in place of them
 */
export const changesOf = (
  $id: string,
  signals: readonly string[],
  objects: Readonly<Record<string, TSchema>>,
  fields: Readonly<Record<string, TProperties | undefined>> = {},
) =>
  t.Union(
    [
      ...signals.map((type) => messageOf(type, {})),
      ...Object.entries(objects).map(([type, object]) =>
        messageOf(type, {
          id: t.String(),
          ...fields[type],
          value: t.Nullable(object, { description: 'Null if it is gone.' }),
        }),
      ),
    ],
    { $id },
  )

/** A message of `GET /changes`, for documents. */
export const Change = changesOf('Change', ['ready', 'gap'], OBJECTS, FIELDS)
