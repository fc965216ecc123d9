import { afterAll, expect, test } from 'bun:test'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Ajv from 'ajv'
import { parse } from 'yaml'
import { isBase64 } from '../../../src/runtime/decode.ts'
import { fixturesSchema } from '../../../src/testing/seed/model.ts'
import { readFixtures } from '../../../src/testing/seed/read.ts'
import { GOOD, MISSHAPEN } from './documents.ts'

const root = join(import.meta.dir, '../../..')
const folder = mkdtempSync(join(tmpdir(), 'berth-schema-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const validate = new Ajv({
  strict: true,
  strictTypes: false,
  allErrors: true,
  formats: { byte: isBase64 },
}).compile(fixturesSchema())

/** What the reader has against a document, or null. */
function refusal(document: unknown): string | null {
  const path = join(folder, 'document.json')
  writeFileSync(path, JSON.stringify(document))
  try {
    readFixtures([path], {})
    return null
  } catch (error) {
    return (error as Error).message
  }
}

test('the schema in the repository is the one that berth has', () => {
  const kept = JSON.parse(readFileSync(join(root, 'docs/fixtures.schema.json'), 'utf8'))
  expect(kept).toEqual(fixturesSchema())
})

test('what the reader takes the schema takes, and what has the wrong shape both refuse', () => {
  for (const document of GOOD) {
    expect([document, refusal(document)]).toEqual([document, null])
    expect([document, validate(document), validate.errors]).toEqual([document, true, null])
  }
  for (const document of MISSHAPEN) {
    expect([document, refusal(document)]).toEqual([document, expect.any(String)])
    expect([document, validate(document)]).toEqual([document, false])
  }
})

test('the example files fit the schema', () => {
  const scenarios = readdirSync(join(root, 'fixtures/scenarios')).map((name) => `fixtures/scenarios/${name}`)
  for (const path of ['fixtures/shop/fixtures.yaml', ...scenarios]) {
    const document = parse(readFileSync(join(root, path), 'utf8'))
    expect([path, validate(document), validate.errors]).toEqual([path, true, null])
  }
})
