import type { ReadResourceResult, Resource, ResourceTemplateType } from '@modelcontextprotocol/server'
import { BerthError, type ErrorCode } from '../../errors.ts'
import { type ApiResponse, type CallersApi, fillPath } from './callers-api.ts'

/** The files of this many servers are listed, newest server first. @bound reader */
const MAX_SERVERS = 20

/** Limits the files listed in total. Files beyond it can still be read. @bound reader */
const MAX_FILES = 500

/** A kind of resource: the form of its URI and the operation that reads it. */
interface ResourceKind {
  readonly template: ResourceTemplateType
  /** The operation's path, with the same parameters as the URI. */
  readonly path: string
  /** Parameters of the URI that go into the query. */
  readonly inQuery?: readonly string[]
  readonly query?: Readonly<Record<string, string>>
  contents(uri: string, body: ApiResponse['body']): ReadResourceResult['contents'][number]
}

const json =
  (field: string) =>
  (uri: string, body: ApiResponse['body']): ReadResourceResult['contents'][number] => ({
    uri,
    mimeType: 'application/json',
    text: JSON.stringify(body[field], null, 2),
  })

const log = (uri: string, body: ApiResponse['body']): ReadResourceResult['contents'][number] => ({
  uri,
  mimeType: 'text/plain',
  text: (body.logs as { at: string; source: string; text: string }[])
    .map(({ at, source, text }) => `${at} ${source}: ${text}\n`)
    .join(''),
})

function file(uri: string, body: ApiResponse['body']): ReadResourceResult['contents'][number] {
  const { path, content, encoding } = body as { path: string; content: string; encoding?: string }
  // Bun derives the type from the name; the file need not exist.
  const mimeType = Bun.file(path).type.replace(/;.*/, '')
  if (encoding === 'base64') return { uri, mimeType, blob: content }
  const isUnknown = mimeType === 'application/octet-stream'
  return { uri, mimeType: isUnknown ? 'text/plain' : mimeType, text: content }
}

/** All kinds of resources. A URI is matched segment by segment. Relative references are not resolved. */
const KINDS: readonly ResourceKind[] = [
  {
    template: {
      name: 'file',
      title: 'File of a server',
      uriTemplate: 'berth://servers/{serverId}/files/{+path}',
      description: "A file in a server's workspace.",
    },
    path: '/servers/{serverId}/files',
    inQuery: ['path'],
    contents: file,
  },
  {
    template: {
      name: 'transcript',
      title: 'Transcript of a task',
      uriTemplate: 'berth://servers/{serverId}/tasks/{taskId}/events',
      description: 'What the agent did and said, oldest first.',
      mimeType: 'application/json',
    },
    path: '/servers/{serverId}/tasks/{taskId}/events',
    contents: json('events'),
  },
  {
    template: {
      name: 'build-log',
      title: 'Log of a build',
      uriTemplate: 'berth://servers/{serverId}/builds/{buildId}/logs',
      description: 'What its steps did and printed: the last 1000 lines.',
      mimeType: 'text/plain',
    },
    path: '/servers/{serverId}/builds/{buildId}/logs',
    query: { tail: '1000' },
    contents: log,
  },
  {
    template: {
      name: 'project-log',
      title: 'Log of a project',
      uriTemplate: 'berth://projects/{projectId}/logs',
      description: 'What its bring-ups and its app printed: the last 1000 lines.',
      mimeType: 'text/plain',
    },
    path: '/projects/{projectId}/logs',
    query: { tail: '1000' },
    contents: log,
  },
]

/** The entries of `resources/templates/list`. */
export const RESOURCE_TEMPLATES: readonly ResourceTemplateType[] = KINDS.map(({ template }) => template)

/**
 * Reads a resource.
 *
 * @returns null if there is no such resource, or the caller may not see it
 * @throws BerthError if it cannot be read for another reason
 */
export async function readResource(
  uri: string,
  api: CallersApi,
  signal: AbortSignal,
): Promise<ReadResourceResult | null> {
  for (const kind of KINDS) {
    const values = parametersOf(kind.template.uriTemplate, uri)
    if (values === null) continue
    const query = { ...kind.query }
    for (const name of kind.inQuery ?? []) query[name] = values[name] ?? ''
    const { status, body } = await api.fetchJson({
      method: 'GET',
      path: fillPath(kind.path, values),
      query,
      signal,
    })
    if (status === 404) return null
    if (status >= 400) throw refusal(body)
    return { contents: [kind.contents(uri, body)] }
  }
  return null
}

/** Converts a failure of the API to an error. */
const refusal = ({ error, message }: ApiResponse['body']): BerthError =>
  new BerthError(error as ErrorCode, String(message))

/** Returns the values of a template's parameters in a URI, or null if the URI does not match the template. */
function parametersOf(template: string, uri: string): Record<string, string> | null {
  const names: string[] = []
  const pattern = template.replaceAll(/\{(\+?)([^}]+)\}/g, (_, many: string, name: string) => {
    names.push(name)
    return many ? '([^?#]+)' : '([^/?#]+)'
  })
  const found = new RegExp(`^${pattern}$`).exec(uri)
  if (!found) return null
  try {
    return Object.fromEntries(names.map((name, index) => [name, decodeURIComponent(found[index + 1] ?? '')]))
  } catch {
    // Invalid percent-encoding names no resource.
    return null
  }
}

/** Returns the URI of a file. */
const fileUri = (serverId: string, path: string): string =>
  `berth://servers/${serverId}/files/${path.split('/').map(encodeURIComponent).join('/')}`

/**
 * Lists the files of the caller's servers, newest server first, within the limits.
 *
 * @throws BerthError if the API refuses
 */
export async function listResources(api: CallersApi, signal: AbortSignal): Promise<Resource[]> {
  const { status, body } = await api.fetchJson({ method: 'GET', path: '/servers', signal })
  if (status >= 400) throw refusal(body)
  const servers = (body.servers as { id: string; task: string }[]).slice(0, MAX_SERVERS)
  const listed: Resource[] = []
  for (const { id, task } of servers) {
    const response = await api.fetchJson({
      method: 'GET',
      path: fillPath('/servers/{id}/files', { id }),
      signal,
    })
    // The server may have been deleted meanwhile.
    if (response.status !== 200) continue
    for (const path of response.body.files as string[]) {
      if (listed.length === MAX_FILES) return listed
      listed.push({ uri: fileUri(id, path), name: path, description: `On ${id}${task ? ` (${task})` : ''}.` })
    }
  }
  return listed
}
