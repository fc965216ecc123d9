import { Type } from '@sinclair/typebox'
import { type Static, t } from 'elysia'
import { oneOf } from '../../contract/schema.ts'
import { Lifecycle, Visibility } from '../projects/traits.ts'

/** The ids of all templates, in the order in which people are shown them: simplest first. */
export const TEMPLATE_IDS = [
  'static-site',
  'bun-api',
  'sqlite-notes',
  'fullstack',
  'websocket-chat',
  'python-api',
] as const

/** The id of a template, in requests. */
export const TemplateId = Type.Unsafe<string>(
  oneOf([...TEMPLATE_IDS], {
    $id: 'TemplateId',
    description: 'The id of a template, as `GET /templates` lists them.',
  }),
)

/** An app to start a project from (specification, "ProjectTemplate"). */
export const ProjectTemplate = t.Object(
  {
    id: t.String({ description: 'What `template` of a new project names.' }),
    label: t.String(),
    description: t.String(),
    defaults: t.Object(
      {
        name: t.String(),
        description: t.String(),
        visibility: Visibility,
        lifecycle: Lifecycle,
      },
      {
        $id: 'ProjectDefaults',
        description: 'Of a project that is made from it and says nothing else.',
        additionalProperties: true,
      },
    ),
  },
  { $id: 'ProjectTemplate', additionalProperties: true },
)
export type ProjectTemplate = Static<typeof ProjectTemplate>
