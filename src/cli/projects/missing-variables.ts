import type { Project } from '../../resources/projects/model.ts'
import type { Client } from '../client.ts'
import { printable } from '../output.ts'

/** Returns the commands that continue a bring-up that waits for variables. */
export async function missingVariablesText(client: Client, { id, slug }: Project): Promise<string> {
  const { variables } = await client.call('projectSecrets.list', { params: { projectId: id } })
  const missing = variables.filter((variable) => variable.missing)
  const names = missing.map(({ name }) => name)
  const described = missing.flatMap(({ name, description }) =>
    description === null ? [] : [`  ${name}: ${printable(description)}\n`],
  )
  return `${slug} waits for the variables that its code asks for: ${names.join(', ')}.
${described.join('')}  Set them:           berth secrets set ${names.join(' ')} --project ${id}
  Go on without them: berth projects init ${id} --proceed
`
}
