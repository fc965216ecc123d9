import type { ReferenceOperation } from './reference.ts'

/** A way to send the request of an operation. */
interface Sample {
  /** Its tab. */
  readonly label: string
  readonly text: string
}

/** Stands for the instance's address until a page is sent, because pages are kept for all addresses. */
export const ORIGIN = 'http://origin.invalid'

/** Returns the samples of an operation: curl, the command of berth if there is one, and JavaScript. */
export function samplesOf(operation: ReferenceOperation): Sample[] {
  const { command, isSocket } = operation
  return [
    ...(isSocket ? [] : [{ label: 'curl', text: curl(operation) }]),
    ...(command === undefined ? [] : [{ label: 'berth', text: command }]),
    { label: 'JavaScript', text: isSocket ? webSocket(operation) : fetchCall(operation) },
  ]
}

/** Returns the variable with the credential, as `berth env` names it; null if none is needed. */
const variableOf = ({ access }: ReferenceOperation): string | null =>
  access === 'public' ? null : access === 'admin' ? 'BERTH_ADMIN_TOKEN' : 'BERTH_API_KEY'

/** Returns the path with its required query. */
function target({ path, query }: ReferenceOperation, parameter: (name: string) => string): string {
  const filled = path.replaceAll(/\{(\w+)\}/g, (_, name: string) => parameter(name))
  const required = new URLSearchParams(
    Object.entries(query).map(([name, value]): [string, string] => [name, String(value)]),
  ).toString()
  return required === '' ? filled : `${filled}?${required}`
}

/** Turns `serverId` into `SERVER_ID`. */
const shellName = (name: string): string => name.replaceAll(/[A-Z]/g, (letter) => `_${letter}`).toUpperCase()

function curl(operation: ReferenceOperation): string {
  const { method, body, takes, isEndless } = operation
  const variable = variableOf(operation)
  const url = `${ORIGIN}${target(operation, (name) => `$${shellName(name)}`)}`
  return [
    `curl ${isEndless ? '-N ' : ''}${method === 'GET' ? '' : `-X ${method} `}"${url}"`,
    ...(variable === null ? [] : [`-H "Authorization: Bearer $${variable}"`]),
    ...(body === undefined
      ? []
      : [`-H "Content-Type: application/json"`, `-d '${JSON.stringify(body).replaceAll("'", "'\\''")}'`]),
    ...(takes === undefined ? [] : [`-H "Content-Type: ${takes}"`, '--data-binary @-']),
  ].join(' \\\n  ')
}

function fetchCall(operation: ReferenceOperation): string {
  const { method, body, takes } = operation
  const variable = variableOf(operation)
  const headers = [
    ...(variable === null ? [] : [`    Authorization: \`Bearer \${${variable}}\`,`]),
    ...(body === undefined ? [] : [`    'Content-Type': 'application/json',`]),
    ...(takes === undefined ? [] : [`    'Content-Type': '${takes}',`]),
  ]
  const lines = [
    ...(method === 'GET' ? [] : [`  method: '${method}',`]),
    ...(headers.length === 0 ? [] : ['  headers: {', ...headers, '  },']),
    ...(body === undefined
      ? []
      : [`  body: JSON.stringify(${JSON.stringify(body, null, 2).replaceAll('\n', '\n  ')}),`]),
    ...(takes === undefined ? [] : ['  body: bytes,']),
  ]
  const url = urlInScript(operation, ORIGIN)
  return lines.length === 0
    ? `const response = await fetch(${url})`
    : `const response = await fetch(${url}, {\n${lines.join('\n')}\n})`
}

/** Browsers send no headers with a WebSocket; Bun and other programs do. */
const webSocket = (operation: ReferenceOperation): string =>
  `const socket = new WebSocket(${urlInScript(operation, ORIGIN.replace('http', 'ws'))}, {
  headers: { Authorization: \`Bearer \${${variableOf(operation) ?? ''}}\` },
})`

function urlInScript(operation: ReferenceOperation, origin: string): string {
  const url = `${origin}${target(operation, (name) => `\${${name}}`)}`
  return url.includes('${') ? `\`${url}\`` : `'${url}'`
}
