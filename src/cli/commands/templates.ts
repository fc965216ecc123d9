import type { Command } from 'commander'
import type { ProjectTemplate } from '../../resources/templates/model.ts'
import type { ConnectionOptions } from '../instance.ts'
import { type Column, table } from '../output.ts'
import { connect, printJson, type Session, withConnection, withJson } from '../session.ts'

const COLUMNS: Column<ProjectTemplate>[] = [
  { heading: 'ID', cell: ({ id }) => id },
  { heading: 'LABEL', cell: ({ label }) => label },
  { heading: 'DESCRIPTION', cell: ({ description }) => description },
]

/** Adds `templates`. */
export function registerTemplates(program: Command, session: Session): void {
  const { stdout } = session.terminal
  withConnection(withJson(program.command('templates')))
    .summary('list what projects can start from')
    .description('Lists the templates that "berth projects create --template ID" starts from.')
    .action(async (options: ConnectionOptions & { json?: boolean }) => {
      const client = await connect(session, options)
      const answer = await client.request<{ templates: ProjectTemplate[] }>('GET', '/templates')
      if (options.json) return printJson(session, answer)
      await stdout.write(table(stdout, COLUMNS, answer.templates))
    })
}
