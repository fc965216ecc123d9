import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { delimiter, dirname, join, resolve } from 'node:path'
import { parse } from 'yaml'
import type { KubernetesConfig } from '../../config/compute.ts'
import { machineNow } from '../../runtime/clock.ts'
import { messageOf } from '../../runtime/error-info.ts'
import { fieldsOf, fieldsOfJson, isObject, objectsOf } from '../../runtime/is-object.ts'
import { runHelper } from '../../runtime/run-helper.ts'
import { ComputeError } from '../sandbox.ts'

/** Milliseconds in which a credential plugin has to respond. */
const PLUGIN_MS = 20_000

/** A token is renewed this long before it expires, in milliseconds. */
const EARLY_MS = 60_000

/** Where a pod finds what it needs to call its own cluster. */
const SERVICE_ACCOUNT = '/var/run/secrets/kubernetes.io/serviceaccount'

/** Environment variables. */
type Variables = Readonly<Record<string, string | undefined>>

/** What is needed to call the API server of a cluster. */
export interface ClusterAccess {
  /** URL of the API server, without a slash at its end. */
  readonly server: string
  /** The namespace of the context. */
  readonly namespace: string
  /** Certificates as PEM: the authorities that are trusted, by default the system's, and the client's own. */
  readonly tls: { readonly ca?: string; readonly cert?: string; readonly key?: string }
  /**
   * Returns the value of the Authorization header, or null if there is none.
   *
   * @param refused whether the server has just refused the last one, so that it is not taken from memory
   */
  authorization(refused: boolean): Promise<string | null>
}

/**
 * Reads how to call a cluster: from the kubeconfig files that are named, else from those in `KUBECONFIG`, else from
 * `~/.kube/config`, else, in a pod, from its service account.
 *
 * @param variables the environment of berth
 * @throws ComputeError if no cluster is named, or in a way that is not supported
 */
export async function readAccess(
  config: Pick<KubernetesConfig, 'kubeconfig' | 'context'>,
  variables: Variables,
): Promise<ClusterAccess> {
  const paths = config.kubeconfig.length > 0 ? config.kubeconfig : foundFiles(variables)
  if (paths.length > 0) return accessOf(await Promise.all(paths.map(parsedFile)), config.context, variables)
  const { KUBERNETES_SERVICE_HOST: host, KUBERNETES_SERVICE_PORT: port = '443' } = variables
  if (host !== undefined && existsSync(join(SERVICE_ACCOUNT, 'token'))) return inCluster(host, port)
  throw new ComputeError(
    'No Kubernetes cluster is configured: there is no ~/.kube/config, and KUBECONFIG is not set. ' +
      'Name a file with --kubeconfig.',
  )
}

function foundFiles({ KUBECONFIG, HOME }: Variables): string[] {
  const named = (KUBECONFIG ?? '').split(delimiter).filter(Boolean)
  if (named.length > 0) return named
  return [join(HOME ?? '/', '.kube/config')].filter((path) => existsSync(path))
}

/** A kubeconfig file. Of entries with one name in several files, the first counts. */
interface Kubeconfig {
  readonly path: string
  readonly fields: Record<string, unknown>
}

/** An entry of a kubeconfig, and the directory against which its paths are resolved. */
interface Entry {
  readonly fields: Record<string, unknown>
  readonly directory: string
}

async function parsedFile(path: string): Promise<Kubeconfig> {
  try {
    return { path, fields: fieldsOf(parse(await readFile(path, 'utf8'))) }
  } catch (error) {
    throw new ComputeError(`The kubeconfig ${path} cannot be read: ${messageOf(error)}`, { cause: error })
  }
}

const pathsOf = (files: readonly Kubeconfig[]): string => files.map(({ path }) => path).join(', ')

async function accessOf(
  files: readonly Kubeconfig[],
  wanted: string | null,
  variables: Variables,
): Promise<ClusterAccess> {
  const contexts = [wanted, ...files.map(({ fields }) => textOf(fields['current-context']))]
  const contextName = contexts.find((name) => name !== null)
  if (contextName == null)
    throw new ComputeError(`No context is chosen in ${pathsOf(files)}. Name one with --kubernetes-context.`)
  const context = entryOf(files, 'context', contextName).fields
  const cluster = entryOf(files, 'cluster', context.cluster)
  const user = entryOf(files, 'user', context.user)
  const server = textOf(cluster.fields.server) ?? ''
  if (!server.startsWith('https://'))
    throw new ComputeError(
      `The context ${contextName} has the server ${JSON.stringify(server)}: berth calls https:// alone. Change it in ${pathsOf(files)}.`,
    )
  for (const [field, entry] of [
    ['insecure-skip-tls-verify', cluster],
    ['tls-server-name', cluster],
    ['proxy-url', cluster],
    ['username', user],
    ['auth-provider', user],
  ] as const) {
    if (entry.fields[field])
      throw new ComputeError(
        `The context ${contextName} uses ${field}, which berth does not support. Use a context without it, or remove it from ${pathsOf(files)}.`,
      )
  }
  const [ca, cert, key] = await Promise.all([
    pemOf(cluster, 'certificate-authority'),
    pemOf(user, 'client-certificate'),
    pemOf(user, 'client-key'),
  ])
  return {
    server: server.replace(/\/+$/, ''),
    namespace: textOf(context.namespace) ?? 'default',
    tls: { ...(ca !== null && { ca }), ...(cert !== null && { cert }), ...(key !== null && { key }) },
    authorization: authorizationOf(user, variables),
  }
}

function entryOf(files: readonly Kubeconfig[], kind: 'cluster' | 'user' | 'context', wanted: unknown): Entry {
  const entries = files.flatMap(({ path, fields }) =>
    objectsOf(fields[`${kind}s`]).map(({ name, [kind]: own }) => ({
      ...{ name, fields: fieldsOf(own), directory: dirname(resolve(path)) },
    })),
  )
  const found = entries.find(({ name }) => name === (wanted ?? ''))
  if (found !== undefined) return found
  const known = [...new Set(entries.map(({ name }) => name))].join(', ') || 'none'
  throw new ComputeError(
    `${pathsOf(files)} has no entry ${JSON.stringify(wanted ?? '')} in its ${kind}s; it has ${known}. Name a context with --kubernetes-context.`,
  )
}

/** Returns a certificate or key: from the field with its data, which goes first, or from the file that is named. */
async function pemOf({ fields, directory }: Entry, name: string): Promise<string | null> {
  const data = textOf(fields[`${name}-data`])
  if (data !== null) return Buffer.from(data, 'base64').toString()
  const file = textOf(fields[name])
  return file === null ? null : await readSecretFile(resolve(directory, file))
}

function authorizationOf({ fields, directory }: Entry, variables: Variables): ClusterAccess['authorization'] {
  const file = textOf(fields.tokenFile)
  if (file !== null) return async () => `Bearer ${(await readSecretFile(resolve(directory, file))).trim()}`
  const token = textOf(fields.token)
  if (token !== null) return async () => `Bearer ${token}`
  if (!isObject(fields.exec)) return async () => null
  const { exec } = fields
  let given: Token | null = null
  let running: Promise<Token> | null = null
  return async (refused) => {
    if (refused || given === null || given.expires < machineNow()) {
      running ??= tokenOfPlugin(exec, directory, variables).finally(() => {
        running = null
      })
      given = await running
    }
    return `Bearer ${given.value}`
  }
}

/** The token of a service account changes while its pod runs, so it is read each time. */
async function inCluster(host: string, port: string): Promise<ClusterAccess> {
  const read = (name: string): Promise<string> => readSecretFile(join(SERVICE_ACCOUNT, name))
  return {
    server: `https://${host.includes(':') ? `[${host}]` : host}:${port}`,
    namespace: (await read('namespace')).trim(),
    tls: { ca: await read('ca.crt') },
    authorization: async () => `Bearer ${(await read('token')).trim()}`,
  }
}

async function readSecretFile(path: string): Promise<string> {
  try {
    return await readFile(path, 'utf8')
  } catch (error) {
    throw new ComputeError(`${path} cannot be read, which berth needs for the cluster: ${messageOf(error)}`, {
      cause: error,
    })
  }
}

/** What a credential plugin has given; `expires` in milliseconds, infinite if it said nothing. */
interface Token {
  readonly value: string
  readonly expires: number
}

/**
 * Runs the program that a kubeconfig names to obtain a token (client.authentication.k8s.io), with a time limit, and without
 * berth's own variables, some of which are keys. Of what it prints, the token and its expiry are kept, in memory.
 */
async function tokenOfPlugin(
  plugin: Record<string, unknown>,
  directory: string,
  variables: Variables,
): Promise<Token> {
  const command = textOf(plugin.command) ?? ''
  // A name is found in PATH; a path is relative to the file that has it.
  const program = command.includes('/') ? resolve(directory, command) : command
  const args = Array.isArray(plugin.args) ? plugin.args.map(String) : []
  const fail = (what: string, cause?: unknown): never => {
    throw new ComputeError(
      `The credential plugin ${program} of the kubeconfig ${what} Run it by hand to see why.`,
      { cause },
    )
  }
  const own = Object.entries(variables).filter(([name]) => !name.startsWith('BERTH_'))
  const added = objectsOf(plugin.env).map(({ name, value }) => [String(name), String(value)])
  const request = {
    apiVersion: plugin.apiVersion,
    kind: 'ExecCredential',
    spec: { interactive: false },
  }
  const result = await runHelper([program, ...args], {
    env: { ...Object.fromEntries([...own, ...added]), KUBERNETES_EXEC_INFO: JSON.stringify(request) },
    timeoutMs: PLUGIN_MS,
  }).catch((error: unknown) => fail(`failed: ${messageOf(error)}`, error))
  if (result.exitCode !== 0) return fail(`failed with exit code ${result.exitCode}.`)
  const status = fieldsOf(fieldsOfJson(result.stdout).status)
  const token = textOf(status.token)
  if (token === null) return fail('gave no token; berth does not support certificates of plugins.')
  const expires = Date.parse(textOf(status.expirationTimestamp) ?? '')
  return { value: token, expires: Number.isNaN(expires) ? Number.POSITIVE_INFINITY : expires - EARLY_MS }
}

/** Returns a text that is not empty, or null. */
const textOf = (value: unknown): string | null => (typeof value === 'string' && value !== '' ? value : null)
