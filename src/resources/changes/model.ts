import { t } from 'elysia'
import { oneOf } from '../../contract/schema.ts'
import type { Browser, Program } from '../accounts/access-model.ts'
import type { AccountView } from '../accounts/service.ts'
import type { Build } from '../builds/model.ts'
import type { Deployment } from '../deployments/model.ts'
import type { Execution } from '../exec/model.ts'
import type { ApiKey } from '../keys/model.ts'
import type { Project } from '../projects/model.ts'
import type { ProjectSecrets, ServerSecrets } from '../secrets/model.ts'
import type { Server } from '../servers/model.ts'
import type { Task } from '../tasks/model.ts'
import type { Terminal } from '../terminals/model.ts'
import type { Webhook } from '../webhooks/model.ts'
import type { ChangeMessage, StreamSignal } from './stream.ts'
import { ACCOUNT_CHANGE_TYPES } from './types.ts'

/** A message of `GET /changes`, for documents. */
export const Change = t.Object(
  {
    type: oneOf(['ready', 'gap', ...ACCOUNT_CHANGE_TYPES], { $id: 'ChangeType' }),
    id: t.Optional(t.String({ description: 'Of the object; `ready` and `gap` are about none.' })),
    server_id: t.Optional(t.String({ description: 'The server that the object lies on.' })),
    value: t.Optional(
      t.Nullable(t.Record(t.String(), t.Unknown()), {
        description: 'The object as its GET returns it; null if it is gone.',
      }),
    ),
  },
  { $id: 'Change' },
)

/** The objects that `GET /changes` sends, by the type of their messages. */
export interface ChangedObjects {
  server: Server
  project: Project
  /** Its id is its server's: a server has one at most. */
  deployment: Deployment
  task: Task
  build: Build
  terminal: Terminal
  execution: Execution
  /** The names of variables. Its id is that of the server, or of the project, that they belong to. */
  secret: ServerSecrets | ProjectSecrets
  key: ApiKey
  webhook: Webhook
  program: Program
  /** As the reader of the stream sees it, who may be that browser. */
  browser: Browser
  account: AccountView
}

/** A message of `GET /changes` about an object. */
type AccountChange<Type extends keyof ChangedObjects = keyof ChangedObjects> = {
  [Each in Type]: ChangeMessage<Each> & { readonly value: ChangedObjects[Each] | null }
}[Type]

/** A message of `GET /changes`. */
export type AccountChangeMessage = AccountChange | StreamSignal
