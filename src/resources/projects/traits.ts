import { type Static, t } from 'elysia'
import { oneOf } from '../../contract/schema.ts'

/** Whether a project has a URL. */
export const Visibility = oneOf(['public', 'private'], {
  $id: 'Visibility',
  description: 'Only a public project has a URL.',
})
export type Visibility = Static<typeof Visibility>

/** Whether a project may be cleaned up. */
export const Lifecycle = oneOf(['persistent', 'ephemeral'], { $id: 'Lifecycle' })
export type Lifecycle = Static<typeof Lifecycle>

/** What a project is that answers no requests. */
export const ProjectKind = t.Literal('worker', {
  $id: 'ProjectKind',
  description: 'It answers no requests: it has no port, no URL and no health check.',
})
export type ProjectKind = Static<typeof ProjectKind>
