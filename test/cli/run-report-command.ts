/** Programs that tests of reports run as the command of `berth run`. */
import { grantedTokens } from '../support/oauth.ts'
import { archiveOf } from '../support/projects.ts'

const { BERTH_BASE_URL: origin = '', BERTH_API_KEY: key = '', BERTH_ADMIN_TOKEN: admin = '' } = process.env

/** Calls the instance, and returns the response's JSON. */
// biome-ignore lint/suspicious/noExplicitAny: each call has a shape of its own
async function call(method: string, path: string, body?: unknown, credential = key): Promise<any> {
  const response = await fetch(`${origin}${path}`, {
    method,
    headers: { authorization: `Bearer ${credential}`, 'content-type': 'application/json' },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })
  const text = await response.text()
  if (response.status >= 500) throw new Error(`${method} ${path}: ${text}`)
  return text === '' ? null : JSON.parse(text)
}
const control = (method: string, path: string, body?: unknown) => call(method, `/_berth${path}`, body, admin)

/** Runs a task to its end; returns its id. */
async function task(server: string, goal: string, credential = key): Promise<string> {
  const { task_id: id } = await call('POST', `/servers/${server}/tasks`, { goal }, credential)
  await control('GET', `/wait?task=${id}`)
  return id
}

const programs: Record<string, (...args: string[]) => Promise<void>> = {
  /** Does something of each kind in an account that it removes, and in a state that it resets; then fails. */
  async everything(hook = '') {
    const account = await control('POST', '/accounts', { label: 'removed' })
    const { id: server } = await call('POST', '/servers', {}, account.api_key)
    await call('POST', '/webhooks', { url: hook, events: ['task.completed'] }, account.api_key)
    await task(server, 'run: echo from the agent', account.api_key)
    const { events } = await control('GET', '/events?event=task.completed')
    await control('GET', `/wait?deliveries=${events[0].id}`)
    const project = await call(
      'POST',
      `/servers/${server}/projects`,
      { name: 'shop', source: { type: 'template', template: 'static-site' } },
      account.api_key,
    )
    await control('GET', `/wait?project=${project.id}`)
    await call('GET', `/servers/${server}`, undefined, account.api_key)
    await control('DELETE', `/accounts/${account.id}`)
    await call('POST', '/servers', { sise: 'small' })
    await call('GET', '/serverz')
    await control('POST', '/faults', {
      match: { operation: 'keys.list' },
      effect: { error: { status: 503 } },
    })
    await control('GET', '/wait?event=task.failed&timeout_ms=20')
    await control('POST', '/reset', {})
    await call('GET', '/templates')
    process.exit(3)
  },

  /** Has commands and a terminal print something: one that ends, one that runs on, one with much, and a stream. */
  async output() {
    const { id: server } = await call('POST', '/servers', {})
    const detached = async (command: string): Promise<string> => {
      const { execution } = await call('POST', `/servers/${server}/exec`, { command, detach: true })
      return execution.id
    }
    const ended = await detached('echo from the execution; echo to stderr >&2')
    await control('GET', `/wait?execution=${ended}`)
    const much = await detached('echo first; seq 100000; echo last')
    await control('GET', `/wait?execution=${much}`)
    const running = await detached('echo still there; sleep 300')
    const { terminal } = await call('POST', `/servers/${server}/terminals`, {
      command: "printf '\\033[31mred\\033[0m\\r\\n'; sleep 300",
    })
    await call('GET', `/servers/${server}/terminals/${terminal.id}/screen?until=red`)
    const streamed = await fetch(`${origin}/servers/${server}/exec`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${key}`,
        'content-type': 'application/json',
        accept: 'text/event-stream',
      },
      body: JSON.stringify({ command: 'echo streamed' }),
    })
    await streamed.text()
    const stream = streamed.headers.get('x-request-id')
    console.log(JSON.stringify({ ended, much, running, terminal: terminal.id, stream }))
    process.exit(1)
  },

  /** Shows texts in every place that a report has. */
  async show(...texts: string[]) {
    const { id: server } = await call('POST', '/servers', { task: texts[0] })
    for (const text of texts) {
      await call('GET', `/servers/${encodeURIComponent(text)}?sought=${encodeURIComponent(text)}`)
      await task(server, `run: printf '%s\\n' '${text.replaceAll("'", `'\\''`)}'`)
      const data = { task_id: text, server_id: server, status: 'failed', result: text }
      await control('POST', '/events', { event: 'task.failed', data })
    }
    process.exit(1)
  },

  /** Has secrets of every kind used and printed; the file named gets all of them. */
  async secrets(file = '', hook = '') {
    const planted: string[] = [key, admin]
    const { id: server } = await call('POST', '/servers', {})
    const created = await call('POST', '/keys', { label: 'second' })
    planted.push(created.key)
    await call('GET', '/servers', undefined, created.key)
    // Signed in by a link, and by OAuth.
    const { url } = await control('POST', '/sign-in-links', {})
    const signedIn = await fetch(url, { redirect: 'manual', headers: { 'sec-fetch-site': 'none' } })
    const cookie = (signedIn.headers.get('set-cookie') ?? '').split(';')[0] ?? ''
    const session = cookie.slice(cookie.indexOf('=') + 1)
    if (session !== '') planted.push(session)
    await fetch(`${origin}/servers`, { headers: { cookie } })
    planted.push(url.split('/').at(-1) ?? '')
    const { code, tokens } = await grantedTokens({ info: { base_url: origin, api_key: key } })
    planted.push(code, tokens.access_token, tokens.refresh_token)
    await call('GET', '/servers', undefined, tokens.access_token)
    // Webhooks, with a password in the address of one.
    const webhook = await call('POST', '/webhooks', { url: hook, events: ['task.completed'] })
    planted.push(webhook.secret)
    const password = 'Pa55-of-a-URL'
    planted.push(password)
    await call('POST', '/webhooks', { url: `http://user:${password}@127.0.0.1:9/`, events: ['task.created'] })
    await task(server, `run: git ls-remote https://user:${password}@127.0.0.1:9/x.git; true`)
    // Secrets of a server and of a project, which an app prints.
    const ofServer = 'server secret "quoted" 1/+='
    const ofProject = 'project-secret-2\u00fc'
    planted.push(ofServer, ofProject)
    await call('PUT', '/secrets', { server_id: server, secrets: { OF_SERVER: ofServer } })
    const project = await call('POST', `/servers/${server}/projects`, {
      name: 'printing',
      source: await archiveOf({ 'berth.json': '{"start": "env; sleep 60"}' }),
      env: { OF_PROJECT: ofProject },
    })
    if (project.id === undefined) throw new Error(JSON.stringify(project))
    await control('GET', `/wait?project=${project.id}&until=failed,crashed,running&timeout_ms=3000`)
    const { deliveries } = await control('GET', '/deliveries')
    const signature = deliveries[0]?.attempts[0]?.request.headers['webhook-signature']
    if (signature !== undefined) planted.push(signature)
    for (const secret of planted) {
      const base64 = Buffer.from(secret).toString('base64')
      const shown = [secret, base64, encodeURIComponent(secret), JSON.stringify(secret)].join(' ')
      await task(server, `run: cat <<'END'\n${shown}\nEND`)
      await call('GET', `/nowhere/${encodeURIComponent(secret)}?text=${encodeURIComponent(shown)}`)
      await call('POST', `/servers/${server}/exec`, { command: `cat <<'END'\n${shown}\nEND` })
    }
    await call('POST', `/servers/${server}/exec`, { command: 'env' })
    const command = `env; cat <<'END'\n${planted.join('\n')}\nEND`
    const { execution } = await call('POST', `/servers/${server}/exec`, { command, detach: true })
    await control('GET', `/wait?execution=${execution.id}`)
    // A line editor breaks what is typed into lines of the screen.
    const { terminal } = await call('POST', `/servers/${server}/terminals`, { columns: 40, rows: 10 })
    const input = `/servers/${server}/terminals/${terminal.id}/input`
    for (const [index, secret] of planted.entries())
      await call('POST', input, {
        text: `: '${secret.replaceAll("'", '')}'; echo "typed $((${index}))"\r`,
        until: `typed ${index}\\b`,
      })
    await Bun.write(file, JSON.stringify(planted))
    process.exit(1)
  },
}

const [name = '', ...args] = process.argv.slice(2)
await programs[name]?.(...args)
