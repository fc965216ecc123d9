import { Database } from 'bun:sqlite'
import { expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { testBerth } from '../../support/berth.ts'
import { until } from '../../support/processes.ts'

/** A data directory of a berth that has stopped. */
class DataDirectory implements Disposable {
  readonly path = mkdtempSync(join(tmpdir(), 'berth-old-events-'))

  /** Runs a query on the database. */
  query<Row>(sql: string): Row[] {
    using database = new Database(join(this.path, 'berth.db'))
    return database.query<Row, []>(sql).all()
  }

  /** Adds events with the numbers from 1 to `last`. */
  addEvents(last: number): void {
    this.query(`WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < ${last})
      INSERT INTO events (seq, id, account_id, event, data, created_at)
      SELECT n, 'evt_' || n, (SELECT id FROM accounts), 'server.created', '{}', 0 FROM numbers`)
  }

  [Symbol.dispose](): void {
    rmSync(this.path, { recursive: true, force: true })
  }
}

test('the newest 100,000 events are kept, and those before that deliveries need', async () => {
  using directory = new DataDirectory()
  await using first = await testBerth({ dataDir: directory.path })
  // Nothing is sent: it never gets an event that happens here.
  const { body: webhook } = await first.call('POST', '/webhooks', {
    url: 'https://example.com/hook',
    events: ['build.completed'],
  })
  await first.stop()
  directory.addEvents(102_999)
  directory.query('UPDATE fan_out SET seq = 102_999')
  directory.query(`INSERT INTO deliveries (id, webhook_id, event_seq, status, created_at)
    VALUES ('dlv_1', '${webhook.id}', 7, 'failed', 0)`)

  await using second = await testBerth({ dataDir: directory.path })
  await second.control('POST', '/events', { event: 'server.created' })
  const seqs = () => directory.query<{ seq: number }>('SELECT seq FROM events ORDER BY seq LIMIT 2')
  await until(() => seqs()[1]?.seq !== 2, 'old events are deleted')
  expect(seqs()).toEqual([{ seq: 7 }, { seq: 3_001 }])
  expect(directory.query('SELECT count(*) AS count FROM events')).toEqual([{ count: 100_001 }])
})
