import { Database } from 'bun:sqlite'
import { expect, test } from 'bun:test'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { receiver, replyWith } from '../support/receiver.ts'
import { call, type ServeProcess, serve } from '../support/serve.ts'

const PENDING = 100_000

/** Starts of which the quickest counts: a busy machine may hold up any one, a backlog would hold up each. */
const STARTS = 3

test(`${PENDING} pending deliveries cost a start neither time nor memory, and go out in order`, async () => {
  const folder = mkdtempSync(join(tmpdir(), 'berth-backlog-'))
  const start = () =>
    serve(['--port', '0', '--data', folder, '--isolation', 'none', '--allow-local-webhooks'])
  const stop = async ({ child }: ServeProcess) => {
    child.kill('SIGTERM')
    await child.exited
  }
  try {
    await using target = await receiver({ reply: () => {} })
    const first = start()
    const info = await first.ready
    const { body: webhook } = await call(info, 'POST', '/webhooks', { url: target.url })
    await stop(first)

    const without = await quickest(() => Promise.resolve())
    writeBacklog(join(folder, 'berth.db'), webhook.id)
    const withBacklog = await quickest(() => target.got(target.received.length + 1))
    expect(withBacklog.startedInMs).toBeLessThan(without.startedInMs * 4 + 100)
    expect(withBacklog.residentBytes - without.residentBytes).toBeLessThan(40e6)

    target.reply = replyWith(200)
    const last = start()
    await last.ready
    // The first of all came at the starts before too: its attempt was cut off.
    await target.got(1_000 + STARTS, 30_000)
    expect(
      target.received
        .slice(STARTS)
        .map(({ payload }) => payload.n)
        .slice(0, 1_000),
    ).toEqual(Array.from({ length: 1_000 }, (_, n) => n))
    await stop(last)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }

  async function quickest(ready: () => Promise<unknown>) {
    const all = []
    for (let time = 0; time < STARTS; time += 1) all.push(await measured(start(), ready))
    return {
      startedInMs: Math.min(...all.map(({ startedInMs }) => startedInMs)),
      residentBytes: Math.min(...all.map(({ residentBytes }) => residentBytes)),
    }
  }

  async function measured(berth: ServeProcess, ready: () => Promise<unknown>) {
    const { started_in_ms, pid } = await berth.ready
    await ready()
    const resident = /^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]
    await stop(berth)
    return { startedInMs: started_in_ms, residentBytes: Number(resident) * 1_024 }
  }
}, 120_000)

/** Puts pending deliveries into a database that no berth runs on. */
function writeBacklog(path: string, webhookId: string): void {
  using database = new Database(path, { strict: true })
  const account = database.query<{ id: string }, []>('SELECT id FROM accounts').get()?.id ?? ''
  const event = database.prepare(
    `INSERT INTO events (id, account_id, event, data, created_at) VALUES ($id, $account, 'tuning.started', $data, 0) RETURNING seq`,
  )
  const delivery = database.prepare(
    `INSERT INTO deliveries (id, webhook_id, event_seq, status, created_at) VALUES ($id, $webhookId, $seq, 'pending', 0)`,
  )
  database.transaction(() => {
    for (let n = 0; n < PENDING; n++) {
      const { seq } = event.get({ id: `evt_${n}`, account, data: JSON.stringify({ n }) }) as { seq: number }
      delivery.run({ id: `dlv_${n}`, webhookId, seq })
    }
    database.run('UPDATE fan_out SET seq = (SELECT max(seq) FROM events)')
  })()
}
