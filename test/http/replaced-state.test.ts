import { expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { sql } from 'drizzle-orm'
import { Elysia } from 'elysia'
import { errorAnswers } from '../../src/contract/error-response.ts'
import { createLogger } from '../../src/runtime/logger.ts'
import { openDatabase } from '../../src/storage/database.ts'

test('a request that a reset overtakes is asked to come again, a fault before is a fault', async () => {
  const dir = mkdtempSync(join(tmpdir(), 'berth-replaced-'))
  try {
    const database = openDatabase(join(dir, 'berth.db'))
    const lines: string[] = []
    const logger = createLogger('error', (line) => lines.push(line), Date.now)
    const app = new Elysia()
      .use(
        errorAnswers(
          logger,
          () => [],
          () => '',
          { database },
        ),
      )
      .get('/rows', () => database.queries.all(sql`SELECT 1 AS n`))
      .get('/fault', () => {
        throw new Error('Cannot use a closed database')
      })
    const status = async (path: string) => (await app.handle(new Request(`http://localhost${path}`))).status
    expect([await status('/rows'), await status('/fault')]).toEqual([200, 500])
    database.close()
    const response = await app.handle(new Request('http://localhost/rows'))
    expect([response.status, await response.json()]).toEqual([
      503,
      {
        error: 'service_unavailable',
        message: 'The state was replaced while this request was under way. Send it again.',
      },
    ])
    expect(lines).toHaveLength(2)
  } finally {
    rmSync(dir, { recursive: true })
  }
})
