import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { ReadyInfo } from '../../instance/start.ts'
import { type CredentialsFile, readInstance } from '../../storage/data-directory.ts'
import { CommandError } from '../errors.ts'
import { unreadable } from '../local-file.ts'
import { checkAccessible, isHeld } from './directory-lock.ts'

/** The variables with which programs and berth's own commands find an instance. */
export interface InstanceVariables {
  BERTH_BASE_URL: string
  /** Null if the first key was deleted. */
  BERTH_API_KEY: string | null
  BERTH_ADMIN_TOKEN: string
  BERTH_MCP_URL: string
}

/** Returns the variables of an instance. */
export const variablesOf = ({
  base_url,
  api_key,
  admin_token,
  mcp_url,
}: Pick<ReadyInfo, 'base_url' | 'api_key' | 'admin_token' | 'mcp_url'>): InstanceVariables => ({
  BERTH_BASE_URL: base_url,
  BERTH_API_KEY: api_key,
  BERTH_ADMIN_TOKEN: admin_token,
  BERTH_MCP_URL: mcp_url,
})

/**
 * Returns the variables of the instance that runs on a data directory.
 *
 * @throws CommandError if none does
 */
export function variablesOfDirectory(directory: string): InstanceVariables {
  checkAccessible(directory)
  const instance = readInstance(directory)
  if (!instance || !isHeld(directory, instance.pid)) {
    throw new CommandError(
      `No berth runs on ${directory}. Start one with "berth serve --detach", or name its directory with --data.`,
    )
  }
  const { base_url } = instance
  const { api_key, admin_token } = readCredentials(directory)
  return variablesOf({ base_url, api_key, admin_token, mcp_url: `${base_url}/mcp` })
}

function readCredentials(directory: string): CredentialsFile {
  const path = join(directory, 'credentials.json')
  try {
    return JSON.parse(readFileSync(path, 'utf8')) as CredentialsFile
  } catch (error) {
    throw unreadable(path, error)
  }
}

/** The output formats of `berth env`: shells, and JSON for programs. */
export const ENV_SHELLS = ['bash', 'fish', 'powershell', 'json'] as const

/** One of `ENV_SHELLS`. */
type EnvShell = (typeof ENV_SHELLS)[number]

/** Returns the variables as shell code. Unsets a null variable, which may be another instance's. */
export function shellText(variables: InstanceVariables, shell: EnvShell): string {
  if (shell === 'json') return `${JSON.stringify(variables)}\n`
  const { set, unset } = SYNTAX[shell]
  return Object.entries(variables)
    .map(([name, value]: [string, string | null]) => `${value === null ? unset(name) : set(name, value)}\n`)
    .join('')
}

/** How each shell sets an environment variable. Nothing else has a meaning between single quotes. */
const SYNTAX: Record<
  Exclude<EnvShell, 'json'>,
  { set: (name: string, value: string) => string; unset: (name: string) => string }
> = {
  // POSIX syntax, for zsh, dash and ksh too.
  bash: {
    set: (name, value) => `export ${name}='${value.replaceAll("'", "'\\''")}'`,
    unset: (name) => `unset ${name}`,
  },
  fish: {
    set: (name, value) => `set -gx ${name} '${value.replaceAll(/['\\]/g, '\\$&')}'`,
    unset: (name) => `set -e ${name}`,
  },
  powershell: {
    // PowerShell treats typographic quotes like the straight one.
    set: (name, value) => `$env:${name} = '${value.replaceAll(/['‘’‚‛]/g, '$&$&')}'`,
    unset: (name) => `Remove-Item Env:${name} -ErrorAction SilentlyContinue`,
  },
}
