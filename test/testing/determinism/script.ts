import { headersOf, messageFor } from '../../resources/mcp/raw.ts'
import type { TestBerth } from '../../support/berth.ts'
import type { Receiver } from '../../support/receiver.ts'
import { type Recorded, Recorder } from './recording.ts'

/** Waits until the bring-up of a project is over, without a trace in the recording. */
async function isUp(berth: TestBerth, projectId: string): Promise<void> {
  const { body } = await berth.control('GET', `/wait?project=${projectId}&until=ready`)
  if (!body.matched) throw new Error(JSON.stringify(body))
}

/** Waits until every delivery has been tried, without a trace in the recording. */
async function allTried(berth: TestBerth): Promise<void> {
  const { events } = (await berth.control('GET', '/events')).body
  for (const { id } of events) await berth.control('GET', `/wait?deliveries=${id}`)
}

/**
 * Asks for every operation, one request after the other, and for most of what can be refused. Nothing of it
 * depends on how fast the machine is.
 *
 * @param receiver where webhooks lead; the same in every run
 */
export async function everyOperation(
  berth: TestBerth,
  receiver: Receiver,
): Promise<{ requests: Recorded[]; secret: string }> {
  const recorder = new Recorder(berth)
  const call = recorder.call.bind(recorder)
  const control = recorder.control.bind(recorder)

  await call('GET', '/openapi.json')
  await call('GET', '/templates')
  await call('GET', '/servers')
  await call('GET', '/nothing')
  await call('PATCH', '/servers')
  await call('GET', '/servers', undefined, { authorization: 'Bearer nobody' })
  await call('POST', '/servers', { tier: 'huge' })
  const { id: server } = await call('POST', '/servers', { task: 'first', tier: 'small' })
  const { id: second } = await call('POST', '/servers', { task: 'second', tier: 'medium' })
  const at = `/servers/${server}`
  await call('GET', `${at}/compute`)
  await call('PATCH', at, { task: 'renamed', region: 'eu-west' })
  await call('GET', '/servers')

  const { secret } = await call('POST', '/webhooks', { url: receiver.url })
  const { id: closed } = await call('POST', '/webhooks', { url: 'http://127.0.0.1:9/' })
  await call('POST', `/webhooks/${closed}/enable`)
  const { id: unused } = await call('POST', '/webhooks', { url: 'https://93.184.215.14/', events: [] })
  await call('DELETE', `/webhooks/${unused}`)
  await call('GET', '/webhooks')

  await call('PUT', `${at}/files`, { path: 'notes/a.txt', content: 'a' })
  await call('PUT', `${at}/files`, { path: 'notes/b.bin', content: '/wA=', encoding: 'base64' })
  await call('PUT', `${at}/files`, { path: '../out', content: '' })
  await call('GET', `${at}/files`)
  await call('GET', `${at}/files?path=notes/b.bin`)
  await call('GET', `${at}/files/content?path=notes/a.txt`)
  await call('PUT', `${at}/files/content?path=notes/c.bin`)
  await call('GET', at)
  await call('DELETE', `${at}/files?path=notes/b.bin`)
  await call('GET', at)
  await call('PUT', '/secrets', { server_id: server, secrets: { WORD: 'hidden word' } })
  await call('POST', `${at}/exec`, {
    command:
      'pwd; ls -R; echo "$WORD"; env | grep -v -e ^INVOCATION_ID -e ^BERTH_PACKAGES_ -e ^COREPACK_NPM_ -e http://127.0.0.1 | sort; echo e >&2; exit 3',
  })
  await call('POST', `${at}/exec`, { command: 'head -c 100000 /dev/zero > big' })
  await call('POST', `${at}/exec/stream?command=pwd`)
  await call('POST', `${at}/files/manifest`, { path: 'notes' })
  await call('GET', at)
  await call('GET', '/servers')

  const key = await call('POST', '/keys', { label: 'scoped', allowed_server_ids: [server] })
  await call('GET', '/servers', undefined, { authorization: `Bearer ${key.key}` })
  await call('PATCH', `/keys/${key.id}`, {})
  await call('GET', '/keys')
  await call('GET', '/account')
  await call('GET', '/programs')
  await call('DELETE', '/programs/grant_none')
  await call('GET', '/browsers')
  await call('DELETE', '/browsers/ses_none')
  await call('DELETE', `/keys/${key.id}`)

  await call('DELETE', `/keys/${key.id}`)

  await call('POST', `${at}/projects/detect`, { template: 'static-site' })
  const site = await call('POST', `${at}/projects`, { template: 'static-site', visibility: 'public' })
  await isUp(berth, site.id)
  await call('GET', `/projects/${site.id}`)
  await call('GET', `/projects/${site.id}/logs`)
  const api = await call('POST', `${at}/projects`, {
    source: { type: 'template', template: 'bun-api' },
    name: 'API',
  })
  await isUp(berth, api.id)
  await recorder.appLog(`/projects/${api.id}/logs`, 'Listening on ')
  await call('PATCH', `/projects/${api.id}`, { visibility: 'public', description: 'An API' })
  await call('POST', `/projects/${site.id}/init`, { proceed: true })
  await isUp(berth, site.id)
  const page = new Bun.CryptoHasher('sha256').update('page').digest('hex')
  await call('POST', `/projects/${site.id}/push`, { files: [{ path: 'index.html', sha256: page }] })
  await call('POST', `/projects/${site.id}/restart`)
  await isUp(berth, site.id)
  const blank = await call('POST', `${at}/projects`, { lifecycle: 'ephemeral' })
  await call('POST', `/projects/${blank.id}/init`, {})
  await call('GET', `/projects/${api.id}/secrets`)
  await call('PUT', `/projects/${blank.id}/secrets`, { secrets: { TOKEN: 'x', OTHER: null } })
  await call('POST', `/projects/${site.id}/cleanup`)
  await call('POST', `/projects/${blank.id}/cleanup`)
  await call('GET', `${at}/projects`)
  await call('GET', '/projects')
  await call('DELETE', `/projects/${api.id}`)

  await control('PUT', '/scenarios', {
    scenarios: [
      {
        match: { glob: 'Greet *' },
        steps: [
          { run: { command: 'echo hello; echo oh >&2', as: 'said' } },
          { write: { path: 'greeting.txt', content: '{{said}}' } },
          { read: 'greeting.txt' },
          { ask: 'Whom?' },
          { complete: '{{said}} {{answer}}' },
        ],
      },
      { match: 'wait', steps: [{ wait: '2h' }, { complete: 'waited' }] },
    ],
  })
  const { task_id: task } = await call('POST', `${at}/tasks`, { goal: 'Greet somebody' })
  await recorder.follow(`${at}/tasks/${task}/events`, ({ data }) => data.type === 'question')
  await call('GET', `${at}/tasks/${task}`)
  await call('POST', `${at}/tasks/${task}/input`, { answer: 'you' })
  await recorder.follow(`${at}/tasks/${task}/events`)
  await call('GET', `${at}/tasks/${task}/events`)
  const { task_id: long } = await call('POST', `${at}/tasks`, { goal: 'wait' })
  await allTried(berth)
  await control('POST', '/clock', { advance: '2h' })
  await recorder.follow(`${at}/tasks/${long}/events`)
  const { task_id: asked } = await call('POST', `${at}/tasks`, { goal: 'ask: Go on?' })
  await recorder.follow(`${at}/tasks/${asked}/events`, ({ data }) => data.type === 'question')
  await call('POST', `${at}/tasks/${asked}/cancel`)
  const { task_id: failing } = await call('POST', `${at}/tasks`, { goal: 'run: exit 3' })
  await recorder.follow(`${at}/tasks/${failing}/events`)
  await call('POST', `${at}/tasks`, {})
  await call('GET', `${at}/tasks`)
  await call('GET', '/tasks')
  await call('GET', '/builds')

  const mcp = (method: string, params: Record<string, unknown> = {}) =>
    call('POST', '/mcp', messageFor(method, params), headersOf(method, params))
  const tool = (name: string, given: object) => mcp('tools/call', { name, arguments: given })
  await mcp('tools/list')
  await tool('servers_update', { serverId: server, task: 'renamed again' })
  await tool('exec_run', { serverId: server, command: 'echo "$WORD"' })
  await tool('keys_create', { label: 'by a tool' })
  await tool('servers_get', { serverId: 'srv_none' })
  const { result } = await tool('tasks_create', { serverId: server, goal: 'run: true' })
  const { task_id: taskId } = result.structuredContent
  await tool('tasks_events', { serverId: server, taskId, follow: true })
  await mcp('resources/list')

  const { build_id: build } = await call('POST', `${at}/builds`, { goal: 'A notes page' })
  await (await berth.fetch(`${at}/builds/${build}/logs`, { headers: { accept: 'text/event-stream' } })).text()
  await call('GET', `${at}/builds/${build}`)
  await call('GET', `${at}/builds/${build}/logs`)
  await call('GET', `${at}/builds`)

  // The first command of a server has the same pid each time.
  const { id: third } = await call('POST', '/servers', { task: 'third' })
  const { execution } = await call('POST', `/servers/${third}/exec`, {
    ...{ command: 'read -r x; echo got $x', detach: true, openStdin: true },
  })
  const executions = `/servers/${third}/executions`
  await call('GET', `${executions}/${execution.id}`)
  await call('POST', `${executions}/${execution.id}/input`, { text: 'hello\n', end: true })
  const output = `${executions}/${execution.id}/output`
  await (await berth.fetch(output, { headers: { accept: 'text/event-stream' } })).text()
  await call('GET', output)
  await call('GET', executions)
  await call('DELETE', `${executions}/${execution.id}`)
  await call('DELETE', `/servers/${third}`)

  const terminals = `/servers/${second}/terminals`
  const {
    terminal: { id: terminal },
  } = await call('POST', terminals, { command: 'while read -r x; do echo got $x; done' })
  await call('GET', terminals)
  await call('GET', `${terminals}/${terminal}`)
  await call('GET', `${terminals}/${terminal}/attach`)
  await call('POST', `${terminals}/${terminal}/input`, {
    text: 'hello',
    keys: ['enter'],
    until: '^got hello$',
  })
  await call('GET', `${terminals}/${terminal}/screen?lines=5`)
  await call('DELETE', `${terminals}/${terminal}`)
  await call('GET', '/changes', undefined, { accept: 'application/json' })

  await call('PUT', `/servers/${second}/files`, { path: 'index.html', content: '<p>hi</p>' })
  await call('POST', `/servers/${second}/deployments`)
  await call('POST', `/servers/${second}/deployments/push`, { files: [] })
  await call('GET', `/servers/${second}/deployments`)
  await call('GET', `/servers/${second}/deployments/logs`)
  await call('POST', `/servers/${second}/actions`, { action: 'restart' })
  await call('DELETE', `/servers/${second}/deployments`)
  await call('POST', `/servers/${second}/actions`, { action: 'stop' })
  await call('GET', `/servers/${second}/processes`)
  await call('GET', `/servers/${second}/usage`)
  await call('GET', '/usage?days=2')
  // What a server uses that runs is never the same.
  const sleeper = await call('POST', '/keys', { label: 'sleeper', allowed_server_ids: [second] })
  await call('GET', '/usage/servers', undefined, { authorization: `Bearer ${sleeper.key}` })
  await call('DELETE', `/keys/${sleeper.id}`)
  await call('DELETE', `/servers/${second}/processes/2`)
  await call('GET', `/servers/${second}`)
  await call('DELETE', `/servers/${second}`)
  await call('GET', '/servers')

  const account = await control('POST', '/accounts', { label: 'other', budget_cap: 1 })
  await call('POST', '/servers', {}, { authorization: `Bearer ${account.api_key}` })
  await control('PATCH', `/accounts/${account.id}`, { credits_used: 1 })
  await control('GET', '/accounts')
  await control('GET', '/scenarios')
  await control('POST', '/scenarios/preview', { goal: 'run: true' })
  await control('GET', '/tasks/task_none/scenario')
  await control('POST', '/events', { event: 'tuning.completed' })
  await control('GET', '/clock')
  await control('GET', '/fixtures')
  await control('GET', '/events')
  await allTried(berth)
  await control('GET', '/deliveries')
  await control('GET', '/deliveries/summary')
  await control('GET', '/local-webhooks')
  await control('PATCH', '/local-webhooks', { allowed: true })
  return { requests: recorder.all, secret }
}
