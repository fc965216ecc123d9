import { type Static, t } from 'elysia'
import { NO_NUL, oneOf, variables } from '../../contract/schema.ts'

const value = t.String({ maxLength: 65_536, pattern: NO_NUL, writeOnly: true })

/** Environment variables by name. */
export const EnvironmentVariables = variables(value, {
  writeOnly: true,
  description:
    'Environment variables; names match [A-Za-z_][A-Za-z0-9_]*. Of at most 10,000 lines and 1 MiB in all.',
})
export type EnvironmentVariables = Static<typeof EnvironmentVariables>

/** Environment variables to set, or to remove if the value is null. */
const SecretChanges = variables(t.Nullable(value), {
  writeOnly: true,
  description:
    'Values by name, which matches [A-Za-z_][A-Za-z0-9_]*; null removes a variable. Of at most 10,000 lines and 1 MiB in all, with those that are set already.',
})
export type SecretChanges = Static<typeof SecretChanges>

/** Changes to the variables of a server. */
export const ServerSecretsSet = t.Object(
  {
    server_id: t.Optional(t.String({ description: 'Without it, the only server that the key reaches.' })),
    secrets: SecretChanges,
  },
  { $id: 'ServerSecretsSet', additionalProperties: true },
)
export type ServerSecretsSet = Static<typeof ServerSecretsSet>

/** The names of a server's variables. */
export const ServerSecrets = t.Object(
  { server_id: t.String(), keys: t.Array(t.String()) },
  { $id: 'ServerSecrets', additionalProperties: true },
)
export type ServerSecrets = Static<typeof ServerSecrets>

/** Changes to the variables of a project. */
export const ProjectSecretsSet = t.Object(
  { secrets: SecretChanges },
  { $id: 'ProjectSecretsSet', additionalProperties: true },
)
export type ProjectSecretsSet = Static<typeof ProjectSecretsSet>

/** A variable that an app asks for. */
const AppVariable = t.Object(
  {
    name: t.String(),
    required: t.Boolean({ description: 'Whether the app does not start without it.' }),
    description: t.Nullable(t.String(), { description: 'As the code describes it.' }),
    default: t.Nullable(t.String(), { description: 'What the app takes if no value is set.' }),
    set_for: t.Nullable(oneOf(['project', 'server'], { $id: 'VariableOwner' }), {
      description: 'Whether the project or its server has a value; null if neither has one.',
    }),
    missing: t.Boolean({ description: 'Whether a bring-up waits for it.' }),
  },
  { $id: 'AppVariable', additionalProperties: true },
)

/** The variables of a project: those that are set, and those that its app asks for. */
export const ProjectVariables = t.Object(
  {
    project_id: t.String(),
    keys: t.Array(t.String(), { description: 'The names of those that the project has values of.' }),
    variables: t.Array(AppVariable, {
      description:
        'Those that the code asks for: in berth.json, app.json or .env.example, as read at its last bring-up.',
    }),
  },
  { $id: 'ProjectVariables', additionalProperties: true },
)
export type ProjectVariables = Static<typeof ProjectVariables>

/** The names of a project's variables. */
export const ProjectSecrets = t.Object(
  { project_id: t.String(), keys: t.Array(t.String()) },
  { $id: 'ProjectSecrets', additionalProperties: true },
)
export type ProjectSecrets = Static<typeof ProjectSecrets>
