import { type Static, t } from 'elysia'
import { oneOf } from '../../contract/schema.ts'

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
        visibility: oneOf(['public', 'private']),
        lifecycle: oneOf(['persistent', 'ephemeral']),
      },
      { description: 'Of a project that is made from it and says nothing else.', additionalProperties: true },
    ),
  },
  { $id: 'ProjectTemplate', additionalProperties: true },
)
export type ProjectTemplate = Static<typeof ProjectTemplate>
