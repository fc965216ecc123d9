import { Elysia } from 'elysia'
import { listOf } from '../../contract/model.ts'
import { operation } from '../../contract/operation.ts'
import type { AccessControl } from '../../http/authentication.ts'
import type { TemplateCatalog } from './catalog.ts'
import { ProjectTemplate } from './model.ts'

/** Serves `/templates`: the templates for projects. */
export const templatesRoutes = (access: AccessControl, templates: TemplateCatalog) =>
  new Elysia({ prefix: '/templates' }).use(access).get(
    '',
    () => ({ templates: templates.list() }),
    operation('templates.list', {
      access: 'resource',
      summary: 'List templates',
      description:
        'Lists the apps that a project can be made from: give the id as `template` of a new project.',
      success: { 200: listOf('templates', ProjectTemplate) },
      errors: [401],
    }),
  )
