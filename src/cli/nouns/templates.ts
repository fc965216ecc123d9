import type { ProjectTemplate } from '../../resources/templates/model.ts'
import type { Client } from '../client.ts'
import { call, type Noun, rows } from '../command.ts'
import type { Named } from '../names.ts'
import type { Column } from '../table.ts'

const COLUMNS: readonly Column<ProjectTemplate>[] = [
  { heading: 'ID', cell: ({ id }) => id },
  { heading: 'LABEL', cell: ({ label }) => label },
  { heading: 'DESCRIPTION', cell: ({ description }) => description, elastic: true },
]

/** `berth templates` */
export const templatesNoun: Noun = {
  name: 'templates',
  summary: 'list what projects can start from',
  description: 'Lists the templates that "berth projects create --template ID" starts from.',
  names: [{ placeholder: 'TEMPLATE', words: null, list: listNamed }],
  commands: [
    call('templates.list', {
      usage: 'list',
      description: 'list the templates',
      show: rows('templates', COLUMNS),
    }),
  ],
}

async function listNamed(client: Client, signal?: AbortSignal): Promise<Named[]> {
  const { templates: all } = await client.call('templates.list', { signal })
  return all.map(({ id, label }) => ({ id, description: label }))
}
