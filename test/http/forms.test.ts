import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Elysia, t } from 'elysia'
import { errorAnswers } from '../../src/contract/error-response.ts'
import { openApiDocument } from '../../src/contract/openapi/document.ts'
import { operation } from '../../src/contract/operation.ts'
import { accessControl, Callers, Uploads } from '../../src/http/authentication.ts'
import type { Caller } from '../../src/http/caller.ts'
import { CredentialChanges } from '../../src/http/credential-changes.ts'
import { idempotencyKeys } from '../../src/http/idempotency.ts'
import { idempotency } from '../../src/http/idempotency-table.ts'
import { accounts } from '../../src/resources/accounts/table.ts'
import { API_DOCUMENT } from '../../src/resources/openapi.ts'
import { SteerableClock } from '../../src/runtime/clock.ts'
import { createLogger } from '../../src/runtime/logger.ts'
import { Cipher } from '../../src/storage/cipher.ts'
import { openDatabase } from '../../src/storage/database.ts'

const LIMIT = 64 * 1024

/** Two kinds of a thing, told apart by `type`. */
const Thing = t.Union([
  t.Object({ type: t.Literal('blank') }, { additionalProperties: false }),
  t.Object({ type: t.Literal('git'), url: t.String() }, { additionalProperties: false }),
])

const Body = t.Object(
  {
    name: t.Optional(t.String({ maxLength: 10 })),
    source: t.Optional(Thing),
    env: t.Optional(t.Record(t.String(), t.String())),
  },
  { $id: 'ThingCreate', additionalProperties: true },
)

const folder = mkdtempSync(join(tmpdir(), 'berth-forms-'))
const database = openDatabase(join(folder, 'berth.db'))
const account = { id: 'acct_a', label: 'a', createdAt: 0 }
const clock = new SteerableClock({ frozenAt: null })
const scopes: Record<string, Caller> = {
  whole: { accountId: 'acct_a', credentialId: 'key_whole', servers: null, projects: null },
  scoped: { accountId: 'acct_a', credentialId: 'key_scoped', servers: new Set(['srv_a']), projects: null },
}
const changes = new CredentialChanges()
const callers = new Callers(
  (key) => scopes[key] ?? null,
  changes,
  () => {},
)
const uploads = new Uploads()
const access = accessControl({ callers, uploads, bodyLimit: LIMIT })
let handled = 0

const facts = {
  access: 'account',
  summary: 'Make a thing',
  description: 'For tests.',
  success: { 200: t.Any({ $id: 'Thing' }) },
  errors: [400, 401, 403],
} as const

const idempotencyHooks = idempotencyKeys(
  database.queries,
  new Cipher(new Uint8Array(32)),
  clock,
  callers,
  uploads,
  () => true,
)

/** An app with one operation that takes a form and one that does not. */
const app = new Elysia({ normalize: false })
  .use(
    errorAnswers(
      createLogger('silent', () => {}, Date.now),
      () => ['POST'],
      () => '',
      { database, onFailure: idempotencyHooks.end },
    ),
  )
  .use(idempotencyHooks.plugin)
  .use(access)
  .post(
    '/things',
    ({ body, upload }) => {
      handled += 1
      return { body, upload: upload && Buffer.from(upload).toString('hex') }
    },
    operation(
      'projects.create',
      { ...facts, form: { file: 'archive', json: ['source', 'env'] } },
      { body: t.Optional(Body) },
    ),
  )
  .post('/plain', ({ body }) => ({ body }), operation('projects.init', facts, { body: t.Optional(Body) }))

beforeAll(() => {
  database.queries.insert(accounts).values(account).run()
})
afterAll(() => {
  database.close()
  clock.stop()
  rmSync(folder, { recursive: true, force: true })
})

interface Sent {
  path?: string
  key?: string
  idempotencyKey?: string
  type?: string
}

async function post(
  body: string | Uint8Array<ArrayBuffer> | FormData,
  { path = '/things', key = 'whole', idempotencyKey, type }: Sent = {},
) {
  const response = await app.handle(
    new Request(`http://localhost${path}`, {
      method: 'POST',
      body,
      headers: {
        authorization: `Bearer ${key}`,
        ...(type ? { 'content-type': type } : {}),
        ...(idempotencyKey ? { 'idempotency-key': idempotencyKey } : {}),
      },
    }),
  )
  // biome-ignore lint/suspicious/noExplicitAny: a test reads whatever shape it expects
  return { status: response.status, headers: response.headers, body: (await response.json()) as any }
}

function form(fields: Record<string, string>, file?: Uint8Array<ArrayBuffer>): FormData {
  const data = new FormData()
  for (const [name, value] of Object.entries(fields)) data.append(name, value)
  if (file) data.append('archive', new Blob([file]), 'code.zip')
  return data
}

const TYPE = 'multipart/form-data; boundary=XX'
const part = (header: string, content: string) => `--XX\r\n${header}\r\n\r\n${content}\r\n`
const named = (name: string, content: string) =>
  part(`Content-Disposition: form-data; name="${name}"`, content)

describe('a form', () => {
  test('becomes the object that JSON would have been, with every byte of the file beside it', async () => {
    const file = new Uint8Array(1024).map((_, index) => index)
    const source = { type: 'git', url: 'https://example.com/a' }
    const fields = { name: 'ünï', source: JSON.stringify(source), env: '{"A":"1"}' }
    const { status, body } = await post(form(fields, file))
    expect(status).toBe(200)
    expect(body.body).toEqual({ name: 'ünï', source, env: { A: '1' } })
    expect(body.upload).toBe(Buffer.from(file).toString('hex'))
  })

  test('may have a file alone, fields alone, or be empty; JSON goes on being taken', async () => {
    expect((await post(form({}, new Uint8Array([1])))).body).toEqual({ body: {}, upload: '01' })
    expect((await post(form({ name: 'a' }))).body).toEqual({ body: { name: 'a' }, upload: null })
    expect((await post('--XX--\r\n', { type: TYPE })).body).toEqual({ body: {}, upload: null })
    expect((await post('{"name":"a"}', { type: 'application/json' })).body.body).toEqual({ name: 'a' })
    expect((await post('')).status).toBe(200)
  })

  test('is read as other programs write it: quoted boundary, preamble, padding, escapes, an empty part', async () => {
    const body = `preamble\r\n${named('name', 'a')}--XX \t\r\nCONTENT-DISPOSITION: form-data; filename="x\\"y;name=z"; name=archive\r\nContent-Type: application/zip\r\n\r\n\r\n--XX--\r\nepilogue`
    const { body: answer } = await post(body, { type: 'Multipart/Form-Data; boundary="XX"; charset=utf-8' })
    expect(answer).toEqual({ body: { name: 'a' }, upload: '' })
  })

  test.each([
    ['no boundary', named('name', 'a'), 'multipart/form-data', 'names no boundary'],
    ['another boundary', named('name', 'a'), 'multipart/form-data; boundary=YY', 'no closing boundary'],
    ['not closed', named('name', 'a'), TYPE, 'no closing boundary'],
    [
      'cut short in a part',
      '--XX\r\nContent-Disposition: form-data; name="a"\r\n\r\nval',
      TYPE,
      'no closing',
    ],
    ['no name', `${part('Content-Disposition: form-data', 'a')}--XX--`, TYPE, 'no name'],
    ['no disposition', `${part('Content-Type: text/plain', 'a')}--XX--`, TYPE, 'no Content-Disposition'],
    ['line feeds alone', `${named('name', 'a')}--XX--`.replaceAll('\r', ''), TYPE, 'follows a boundary'],
    [
      'a header that never ends',
      '--XX\r\nContent-Disposition: form-data\r\n--XX--',
      TYPE,
      'no header that ends',
    ],
    ['a part without a header', '--XX\r\n\r\na\r\n--XX--', TYPE, 'no Content-Disposition'],
    // Else the second delimiter would be taken for the end of the first one's line, or for a part's header.
    ['two boundaries in a row', `--XX\r\n${named('name', 'a')}--XX--`, TYPE, 'no header that ends'],
    ['a part twice', `${named('name', 'a')}${named('name', 'b')}--XX--`, TYPE, 'more than one part "name"'],
    [
      'too many parts',
      `${[...Array(101).keys()].map((n) => named(`n${n}`, '')).join('')}--XX--`,
      TYPE,
      '100 parts',
    ],
    ['bad JSON in a field', `${named('env', '{')}--XX--`, TYPE, 'part "env" is not valid JSON'],
    ['JSON nested deeply', `${named('env', '['.repeat(70))}--XX--`, TYPE, 'part "env" is nested too deeply'],
    ['a bad field', `${named('name', 'x'.repeat(11))}--XX--`, TYPE, '"name" in the body'],
  ])('that has %s is refused with the cause, and nothing runs', async (_name, body, type, message) => {
    const before = handled
    const answer = await post(body, { type })
    expect(answer).toMatchObject({ status: 400, body: { error: 'bad_request' } })
    expect(answer.body.message).toContain(message)
    expect(handled).toBe(before)
  })

  test('with a field that is not UTF-8 is refused', async () => {
    const body = Buffer.concat([
      Buffer.from('--XX\r\nContent-Disposition: form-data; name="name"\r\n\r\n'),
      Buffer.of(0xff),
      Buffer.from('\r\n--XX--\r\n'),
    ])
    expect((await post(body, { type: TYPE })).body.message).toBe(
      'The form\'s part "name" is not valid UTF-8.',
    )
  })

  test('has the limit of every body', async () => {
    expect((await post(form({}, new Uint8Array(LIMIT)))).status).toBe(413)
  })

  test('is looked at after the credential and its access', async () => {
    expect((await post('garbage', { type: TYPE, key: 'unknown' })).status).toBe(401)
    expect((await post('garbage', { type: TYPE, key: 'scoped' })).status).toBe(403)
    expect((await post('garbage', { type: TYPE })).status).toBe(400)
  })

  test('is refused where an operation does not take one', async () => {
    const answer = await post(form({ name: 'a' }), { path: '/plain' })
    expect(answer.status).toBe(400)
    expect(answer.body.message).toContain('"Content-Type: application/json"')
  })

  test('stands in the documents beside JSON, its file as bytes and its JSON fields as JSON', () => {
    const { paths, components } = openApiDocument(app, API_DOCUMENT)
    expect(paths['/things']?.post?.requestBody?.content['multipart/form-data']).toEqual({
      schema: { $ref: '#/components/schemas/ThingCreateForm' },
      encoding: { source: { contentType: 'application/json' }, env: { contentType: 'application/json' } },
    })
    const { properties, ...rest } = components.schemas.ThingCreate ?? {}
    expect(components.schemas.ThingCreateForm).toEqual({
      ...rest,
      properties: {
        ...(properties as object),
        archive: { type: 'string', format: 'binary', contentMediaType: 'application/octet-stream' },
      },
    })
    expect(Object.keys(paths['/plain']?.post?.requestBody?.content ?? {})).toEqual(['application/json'])
  })
})

describe('an Idempotency-Key', () => {
  test('gives the first answer to the same form again, and 400 to one with another file or field', async () => {
    const before = handled
    const sent = { idempotencyKey: 'once' }
    const first = await post(form({ name: 'a' }, new Uint8Array([1])), sent)
    const again = await post(form({ name: 'a' }, new Uint8Array([1])), sent)
    expect(again.headers.get('idempotent-replayed')).toBe('true')
    expect(again.body).toEqual(first.body)
    expect(handled).toBe(before + 1)
    expect((await post(form({ name: 'a' }, new Uint8Array([2])), sent)).status).toBe(400)
    expect((await post(form({ name: 'a' }), sent)).status).toBe(400)
    expect((await post(form({ name: 'b' }, new Uint8Array([1])), sent)).status).toBe(400)
    expect(handled).toBe(before + 1)
  })

  test('keeps nothing from which a secret in the request could be guessed', async () => {
    await post('{"env":{"PIN":"1234"}}', { type: 'application/json', idempotencyKey: 'secret' })
    const said = JSON.stringify(['/things', false, [['env', [['PIN', '1234']]]], null])
    const guess = new Bun.CryptoHasher('sha256').update(said).digest()
    const kept = database.queries.select().from(idempotency).all()
    expect(kept.some(({ key }) => key === 'secret')).toBe(true)
    expect(kept.filter(({ requestHash }) => requestHash.equals(guess))).toEqual([])
  })
})

describe('a mismatch in one of several shapes', () => {
  test.each([
    ['{"type":"git"}', '"source.url" in the body is missing: expected a string.'],
    ['{"type":"git","url":"u","x":1}', '"source.x" in the body is not a known field; known are type, url.'],
    ['{"type":"svn"}', '"source.type" in the body: expected one of blank, git, got "svn".'],
    ['{}', '"source.type" in the body is missing: expected one of blank, git.'],
    ['5', '"source" in the body: expected an object whose type is blank or git, got 5.'],
    ['[]', '"source" in the body: expected an object whose type is blank or git, got [].'],
  ])('%s is refused by its field', async (source, message) => {
    const answer = await post(`{"source":${source}}`, { type: 'application/json' })
    expect(answer).toMatchObject({ status: 400, body: { error: 'bad_request', message } })
  })
})
