// What is tested: a product that has agents write reports, each on a server of its own.
import { createHmac, timingSafeEqual } from 'node:crypto'

/** The month's budget is used up. */
export class OutOfBudget extends Error {}

/** The plan does not allow it. */
export class PlanTooSmall extends Error {}

/** How often a call is made while the backend fails. */
const ATTEMPTS = 2

export class Reports {
  #baseUrl
  #apiKey

  constructor({ baseUrl, apiKey }) {
    this.#baseUrl = baseUrl
    this.#apiKey = apiKey
  }

  /** Provisions a server; resolves to its id. */
  async open(tier = 'small') {
    const { id } = await this.#call('POST', '/servers', { task: 'reports', tier })
    return id
  }

  /** Gives the agent a goal; resolves to the id of the task, which goes on. */
  async write(serverId, goal) {
    const { task_id } = await this.#call('POST', `/servers/${serverId}/tasks`, { goal })
    return task_id
  }

  /** The text of the report. */
  async read(serverId) {
    const { content } = await this.#call('GET', `/servers/${serverId}/files?path=report.md`)
    return content
  }

  /** Has events sent to a URL; resolves to the secret that they are signed with. */
  async subscribe(url, events) {
    const { secret } = await this.#call('POST', '/webhooks', { url, events })
    return secret
  }

  async #call(method, path, body, attempt = 1) {
    const response = await fetch(this.#baseUrl + path, {
      method,
      headers: { authorization: `Bearer ${this.#apiKey}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    })
    const answer = await response.json()
    if (response.ok) return answer
    if (response.status === 402) throw new OutOfBudget(answer.message)
    if (answer.error === 'plan_limit') throw new PlanTooSmall(answer.message)
    if (response.status === 502 && attempt < ATTEMPTS) return this.#call(method, path, body, attempt + 1)
    throw new Error(`${response.status} ${answer.error}: ${answer.message}`)
  }
}

/**
 * Reads a webhook, if it was signed with our secret (standardwebhooks.com).
 *
 * @throws Error for anybody else's
 */
export function readWebhook(headers, body, secret) {
  const key = Buffer.from(secret.replace('whsec_', ''), 'base64')
  const signed = `${headers['webhook-id']}.${headers['webhook-timestamp']}.${body}`
  const expected = Buffer.from(`v1,${createHmac('sha256', key).update(signed).digest('base64')}`)
  const given = Buffer.from(headers['webhook-signature'])
  if (given.length !== expected.length || !timingSafeEqual(given, expected))
    throw new Error('wrong signature')
  return JSON.parse(body)
}
