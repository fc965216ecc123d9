import { expect, test } from 'bun:test'

const { BERTH_BASE_URL: baseUrl, BERTH_ADMIN_TOKEN: adminToken } = process.env

/** One call with a credential; the answer's status and JSON. */
async function call(credential: string | undefined, method: string, path: string, body?: unknown) {
  const response = await fetch(`${baseUrl}${path}`, {
    method,
    headers: { authorization: `Bearer ${credential}`, 'content-type': 'application/json' },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })
  // biome-ignore lint/suspicious/noExplicitAny: a test reads whatever shape it expects
  return { status: response.status, body: (await response.json()) as any }
}

/**
 * Defines tests of one file, each with an account of its own. A test fails where it sees anything of
 * another: its servers, files, webhooks, budget, faults or tasks.
 */
export function defineTests(file: number, count: number): void {
  for (let number = 0; number < count; number++) {
    test(`${file}.${number} meets nothing of another test`, async () => {
      const made = await call(adminToken, 'POST', '/_berth/accounts', { label: `${file}.${number}` })
      const { id: account, api_key: key } = made.body
      const own = (method: string, path: string, body?: unknown) => call(key, method, path, body)
      const mark = `${file}.${number} ${account}`

      expect((await own('GET', '/servers')).body.servers).toEqual([])
      expect((await own('GET', '/webhooks')).body.webhooks).toEqual([])
      const { id } = (await own('POST', '/servers', { task: mark })).body
      await own('PUT', `/servers/${id}/files`, { path: 'mark', content: mark })
      const ran = await own('POST', `/servers/${id}/exec`, { command: 'cat mark; ls | wc -l' })
      expect(ran.body.stdout).toMatch(new RegExp(`^${mark}\\s*1\\n$`))

      // A fault and a budget of this account, while all the others go on.
      const match = { operation: 'exec.run', account_id: account }
      await call(adminToken, 'POST', '/_berth/faults', {
        match,
        effect: { error: { status: 502 } },
        times: 1,
      })
      expect((await own('POST', `/servers/${id}/exec`, { command: 'true' })).status).toBe(502)
      expect((await own('POST', `/servers/${id}/exec`, { command: 'true' })).status).toBe(200)
      const { task_id } = (await own('POST', `/servers/${id}/tasks`, { goal: `complete: ${mark}` })).body
      const waited = await call(adminToken, 'GET', `/_berth/wait?task=${task_id}&timeout_ms=10000`)
      expect(waited.body.task.result).toBe(mark)
      await call(adminToken, 'PATCH', `/_berth/accounts/${account}`, { budget_cap: 1, credits_used: 1 })
      expect((await own('POST', `/servers/${id}/exec`, { command: 'true' })).status).toBe(402)

      expect((await own('GET', '/servers')).body.servers.map((one: { task: string }) => one.task)).toEqual([
        mark,
      ])
      expect((await call(adminToken, 'DELETE', `/_berth/accounts/${account}`)).status).toBe(200)
    })
  }
}
