import { join } from 'node:path'
import { homeDirectory } from '../../runtime/home-directory.ts'
import { CommandError } from '../errors.ts'
import type { ProcessContext } from '../process-context.ts'
import { userDirectory } from '../user-directory.ts'

/** The value of a key in a configuration file. */
export type Setting = string | readonly string[] | { readonly [name: string]: string }

/** A host of the Model Context Protocol, such as a coding assistant, and how a server is added to its configuration. */
export interface McpHost {
  /** Its name on the command line. */
  readonly id: string
  readonly label: string
  /** The program that starts it. */
  readonly program: string
  readonly format: 'json' | 'toml'
  /** The keys that lead to berth's entry in its configuration. */
  readonly path: readonly string[]
  /** Returns the file for all projects of a person; null for a person without a home. */
  userFile(context: ProcessContext): string | null
  /** The file of a project, relative to its directory; null if it has none. */
  readonly projectFile: string | null
  /** Returns berth's entry. @param url of the MCP endpoint */
  entry(url: string): Readonly<Record<string, Setting>>
  /** What the entry has besides for a key of the environment; null if that cannot be done in the file. */
  readonly withKey: Readonly<Record<string, Setting>> | null
  /** How a person signs in, as a sentence. */
  readonly signIn: string
}

/** A file below the home directory. */
const inHome =
  (path: string) =>
  ({ env }: ProcessContext): string | null => {
    const home = env.HOME || homeDirectory()
    return home === null ? null : join(home, path)
  }

const bearer = (variable: string) => ({ headers: { Authorization: `Bearer ${variable}` } })

/** All hosts whose files berth can change, by name. */
export const MCP_HOSTS: readonly McpHost[] = [
  {
    id: 'claude',
    label: 'Claude Code',
    program: 'claude',
    format: 'json',
    path: ['mcpServers', 'berth'],
    userFile: inHome('.claude.json'),
    projectFile: '.mcp.json',
    entry: (url) => ({ type: 'http', url }),
    // The host expands the variable.
    withKey: bearer(['$', '{BERTH_API_KEY}'].join('')),
    signIn: 'Type /mcp in it to sign in.',
  },
  {
    id: 'codex',
    label: 'Codex',
    program: 'codex',
    format: 'toml',
    path: ['mcp_servers', 'berth'],
    userFile: (context) =>
      context.env.CODEX_HOME
        ? join(context.env.CODEX_HOME, 'config.toml')
        : inHome('.codex/config.toml')(context),
    projectFile: '.codex/config.toml',
    entry: (url) => ({ url }),
    withKey: { bearer_token_env_var: 'BERTH_API_KEY' },
    signIn: 'Sign in with: codex mcp login berth',
  },
  {
    id: 'copilot',
    label: 'GitHub Copilot CLI',
    program: 'copilot',
    format: 'json',
    path: ['mcpServers', 'berth'],
    userFile: inHome('.copilot/mcp-config.json'),
    projectFile: null,
    entry: (url) => ({ type: 'http', url, tools: ['*'] }),
    withKey: bearer(['$', '{BERTH_API_KEY}'].join('')),
    signIn: 'Type /mcp auth berth in it to sign in.',
  },
  {
    id: 'cursor',
    label: 'Cursor',
    program: 'cursor',
    format: 'json',
    path: ['mcpServers', 'berth'],
    userFile: inHome('.cursor/mcp.json'),
    projectFile: '.cursor/mcp.json',
    entry: (url) => ({ url }),
    withKey: bearer(['$', '{env:BERTH_API_KEY}'].join('')),
    signIn: 'It asks you to sign in.',
  },
  {
    id: 'gemini',
    label: 'Gemini CLI',
    program: 'gemini',
    format: 'json',
    path: ['mcpServers', 'berth'],
    userFile: inHome('.gemini/settings.json'),
    projectFile: '.gemini/settings.json',
    entry: (url) => ({ httpUrl: url }),
    withKey: bearer('$BERTH_API_KEY'),
    signIn: 'Type /mcp auth berth in it to sign in.',
  },
  {
    id: 'qwen',
    label: 'Qwen Code',
    program: 'qwen',
    format: 'json',
    path: ['mcpServers', 'berth'],
    userFile: inHome('.qwen/settings.json'),
    projectFile: '.qwen/settings.json',
    entry: (url) => ({ httpUrl: url }),
    withKey: bearer('$BERTH_API_KEY'),
    signIn: 'Type /mcp in it, choose berth and Authenticate.',
  },
  {
    id: 'vscode',
    label: 'VS Code',
    program: 'code',
    format: 'json',
    path: ['servers', 'berth'],
    userFile: (context) => {
      if (process.platform === 'darwin')
        return inHome('Library/Application Support/Code/User/mcp.json')(context)
      const directory = userDirectory(context.env, 'XDG_CONFIG_HOME', '.config')
      return directory === null ? null : join(directory, 'Code/User/mcp.json')
    },
    projectFile: '.vscode/mcp.json',
    entry: (url) => ({ type: 'http', url }),
    // Its files hold no variables of the environment; it can ask for a key instead.
    withKey: null,
    signIn: 'It asks you to sign in.',
  },
]

/**
 * Returns the hosts of these names.
 *
 * @throws CommandError for an unknown name
 */
export const findHosts = (ids: readonly string[]): McpHost[] =>
  ids.map((id) => {
    const host = MCP_HOSTS.find((one) => one.id === id)
    if (host) return host
    const known = MCP_HOSTS.map((one) => one.id).join(', ')
    throw new CommandError(
      `berth knows no MCP host "${id}"; it knows ${known}. "berth guide mcp" lists others.`,
    )
  })
