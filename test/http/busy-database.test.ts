import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { testBerth } from '../support/berth.ts'

/** A program that takes a database to write, says so, and keeps it until it is ended. */
const HOLD = `
  const { Database } = require('bun:sqlite')
  const other = new Database(process.argv[1])
  // Berth may write just then.
  other.run('PRAGMA busy_timeout = 10000')
  other.run('BEGIN IMMEDIATE')
  console.log('held')
  setInterval(() => {}, 1000)
`

test('where another program keeps the database, answers say so, and all is well when it lets go', async () => {
  await using berth = await testBerth()
  const other = Bun.spawn([process.execPath, '-e', HOLD, join(berth.dataDir, 'berth.db')], { stdout: 'pipe' })
  try {
    const { value } = await other.stdout.getReader().read()
    expect(new TextDecoder().decode(value)).toBe('held\n')
    const refused = await berth.call('POST', '/keys', { label: 'one' })
    expect(refused).toMatchObject({ status: 503, body: { error: 'service_unavailable' } })
    expect(refused.body.message).toContain('berth.db')
    const client = await fetch(`${berth.info.base_url}/oauth/register`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ redirect_uris: ['https://app.example/'] }),
    })
    expect(client.status).toBe(503)
    expect(await client.json()).toMatchObject({ error: 'temporarily_unavailable' })
    expect(client.headers.get('cache-control')).toBe('no-store')
  } finally {
    other.kill('SIGKILL')
    await other.exited
  }
  expect((await berth.call('POST', '/keys', { label: 'one' })).status).toBe(201)
})
