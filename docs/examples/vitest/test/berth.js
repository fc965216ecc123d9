// What tests need of berth. Copy this file; "berth run" sets the variables that it reads.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'

/** The instance that "berth run" started, which all tests share. */
const shared = { baseUrl: process.env.BERTH_BASE_URL, adminToken: process.env.BERTH_ADMIN_TOKEN }

/** One call of the control API; resolves to the answer. */
export async function control(method, path, body, { baseUrl, adminToken } = shared) {
  if (!baseUrl)
    throw new Error('BERTH_BASE_URL is not set: start the tests by "berth run --allow-local-webhooks -- …"')
  const response = await fetch(`${baseUrl}/_berth${path}`, {
    method,
    headers: { authorization: `Bearer ${adminToken}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
  const answer = await response.json()
  if (!response.ok) throw new Error(`${method} /_berth${path}: ${answer.message}`)
  return answer
}

/** An account with a key of its own: what a test does in it, no other test sees. */
export async function createAccount(params = {}, instance = shared) {
  const { id, api_key } = await control('POST', '/accounts', params, instance)
  return {
    id,
    baseUrl: instance.baseUrl,
    apiKey: api_key,
    /** Changes its plan, its budget or what it has used. */
    change: (changes) => control('PATCH', `/accounts/${id}`, changes, instance),
    /** Has an operation fail for this account; `rest` says how often. */
    fail: (operation, effect, rest = {}) =>
      control('POST', '/faults', { match: { operation, account_id: id }, effect, ...rest }, instance),
    remove: () => control('DELETE', `/accounts/${id}`, undefined, instance),
  }
}

/** Waits for the end of {task: id}, for {inbox: name} to get something, and so on; resolves to what is there then. */
export async function waitFor(what, instance = shared) {
  const query = new URLSearchParams({ timeout_ms: '10000', ...what })
  const outcome = await control('GET', `/wait?${query}`, undefined, instance)
  if (!outcome.matched) throw new Error(`nothing came of ${query}: ${JSON.stringify(outcome)}`)
  return outcome
}

/** An instance of its own, for tests that move the clock, which all accounts of an instance share. */
export async function startInstance(...options) {
  const args = ['serve', '--ephemeral', '--port', '0', '--json', '--log-level', 'error', ...options]
  const child = spawn('berth', args, { stdio: ['ignore', 'pipe', 'inherit'] })
  const [line] = await Promise.race([once(createInterface(child.stdout), 'line'), once(child, 'exit')])
  if (typeof line !== 'string') throw new Error(`berth did not start (exit code ${line})`)
  const ready = JSON.parse(line)
  return {
    baseUrl: ready.base_url,
    adminToken: ready.admin_token,
    async stop() {
      child.kill()
      await once(child, 'exit')
    },
  }
}
