import { chmodSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { ProcessEnvironment } from '../environment.ts'
import { type GitLocation, SSH_PORT } from './location.ts'

/** The inputs of git's configuration files and variables. */
export interface GitSettings {
  location: GitLocation
  /** Checked addresses that a connection may go to; empty if a proxy looks the name up. ssh takes the first one. */
  addresses: readonly string[]
  /** For a local directory: what git may read even if another user owns it. */
  safeDirectories: readonly string[]
  environment: ProcessEnvironment
}

/**
 * Restricts ssh to the agent's keys: neither settings nor keys of berth's user, and no further commands. Hosts must
 * already be known to berth's user.
 */
const SSH_OPTIONS = [
  'BatchMode=yes',
  'StrictHostKeyChecking=yes',
  'IdentityFile=none',
  'ProxyCommand=none',
  'PermitLocalCommand=no',
  'ClearAllForwardings=yes',
  'ForwardAgent=no',
  'ControlMaster=no',
  'ControlPath=none',
  'ConnectTimeout=20',
  'ServerAliveInterval=15',
  'ServerAliveCountMax=4',
]

/** Variables that name a proxy. */
const PROXIES = ['http_proxy', 'https_proxy', 'HTTPS_PROXY', 'all_proxy', 'ALL_PROXY', 'no_proxy', 'NO_PROXY']

/**
 * Creates a home for git, with the only settings that apply, and returns the environment to run it in. Settings of
 * the machine or the user do not apply: no hooks, filters, helpers or rewritten URLs.
 *
 * Credentials are in a file of that home, mode 0600, removed with the staging directory. They are in no argument and
 * no variable, which process lists show, and not in the repository's own settings.
 */
export function prepareGit(home: string, settings: GitSettings): Record<string, string> {
  const { location, environment } = settings
  mkdirSync(home, { mode: 0o700 })
  const config = join(home, '.gitconfig')
  writeFileSync(config, configText(settings), { mode: 0o600 })
  chmodSync(config, 0o600)
  return {
    ...pick(environment, ['PATH']),
    ...(location.scheme === 'ssh' ? pick(environment, ['SSH_AUTH_SOCK']) : {}),
    ...(location.scheme === 'https' ? pick(environment, PROXIES) : {}),
    HOME: home,
    // Berth parses the messages.
    LC_ALL: 'C',
    GIT_CONFIG_GLOBAL: config,
    GIT_CONFIG_NOSYSTEM: '1',
    GIT_ATTR_NOSYSTEM: '1',
    GIT_ALLOW_PROTOCOL: location.scheme,
    GIT_TERMINAL_PROMPT: '0',
    GIT_ASKPASS: '',
    SSH_ASKPASS_REQUIRE: 'never',
    GIT_SSH_COMMAND: sshCommand(settings),
    GIT_SSH_VARIANT: 'ssh',
    GIT_LFS_SKIP_SMUDGE: '1',
    GIT_OPTIONAL_LOCKS: '0',
    GIT_CEILING_DIRECTORIES: home,
  }
}

/** Returns the command for ssh, which connects to the address that was checked and knows the host by its name. */
function sshCommand({ location, addresses: [address] }: GitSettings): string {
  const options = [...SSH_OPTIONS]
  if (location.scheme === 'ssh' && address !== undefined && !isLiteral(location.host, [address])) {
    const name = location.host.toLowerCase()
    const alias = location.port === SSH_PORT ? name : `[${name}]:${location.port}`
    options.push(`HostName=${address}`, `'HostKeyAlias=${alias}'`)
  }
  return ['ssh -F /dev/null', ...options].join(' -o ')
}

/** Reports whether a host of a URL is itself one of the addresses. */
const isLiteral = (host: string, addresses: readonly string[]): boolean =>
  addresses.includes(host.replace(/^\[|\]$/g, ''))

function configText({ location, addresses, safeDirectories, environment }: GitSettings): string {
  const lines = [...FIXED]
  if (location.scheme === 'https') {
    const { host, port, credentials } = location
    lines.push('[http]')
    const ca = environment.GIT_SSL_CAINFO ?? environment.SSL_CERT_FILE
    if (ca) lines.push(`sslCAInfo = ${configValue(ca)}`)
    if (addresses.length > 0 && !isLiteral(host, addresses)) {
      const literal = addresses.map((address) => (address.includes(':') ? `[${address}]` : address))
      lines.push(`curloptResolve = ${configValue(`${host}:${port}:${literal.join(',')}`)}`)
    }
    if (credentials) {
      const basic = Buffer.from(`${credentials.user}:${credentials.password}`).toString('base64')
      lines.push(`[http ${configValue(`https://${host}:${port}/`)}]`)
      lines.push(`extraHeader = ${configValue(`Authorization: Basic ${basic}`)}`)
    }
  }
  if (safeDirectories.length > 0)
    lines.push('[safe]', ...safeDirectories.map((one) => `directory = ${configValue(one)}`))
  return `${lines.join('\n')}\n`
}

const FIXED = [
  '[core]',
  'hooksPath = /dev/null',
  'attributesFile = /dev/null',
  'excludesFile = /dev/null',
  'fsmonitor = false',
  'symlinks = true',
  'protectHFS = true',
  'protectNTFS = true',
  'autocrlf = false',
  'bigFileThreshold = 32m',
  '[init]',
  'templateDir =',
  'defaultBranch = main',
  '[protocol]',
  'version = 2',
  '[transfer]',
  'bundleURI = false',
  '[fetch]',
  'unpackLimit = 1',
  'recurseSubmodules = false',
  '[submodule]',
  'recurse = false',
  '[gc]',
  'auto = 0',
  '[maintenance]',
  'auto = false',
  '[credential]',
  'helper =',
  '[http]',
  // A redirect could lead to a host that was not checked.
  'followRedirects = false',
  'sslVerify = true',
  'lowSpeedLimit = 1000',
  'lowSpeedTime = 60',
  '[advice]',
  'detachedHead = false',
]

/** Quotes a value for a config file. */
function configValue(text: string): string {
  return `"${text.replaceAll(/["\\]/g, '\\$&').replaceAll('\n', '\\n').replaceAll('\t', '\\t')}"`
}

function pick(environment: ProcessEnvironment, names: readonly string[]): Record<string, string> {
  return Object.fromEntries(
    names.flatMap((name) => {
      const value = environment[name]
      return value === undefined || value === '' ? [] : [[name, value]]
    }),
  )
}
