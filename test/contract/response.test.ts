import { expect, test } from 'bun:test'
import { Elysia, t } from 'elysia'
import { checkedResponse } from '../../src/contract/response.ts'

/** More requests than are checked before the check is compiled. */
const REQUESTS = 50

test('the first response and each later one has the fields of its schema, and no others', async () => {
  const shape = t.Object({ servers: t.Array(t.Object({ id: t.String() })) })
  const before = JSON.stringify(shape)
  let body: unknown
  const failures: string[] = []
  const app = new Elysia({ normalize: false })
    .onError(({ code, error }) => {
      failures.push(`${code}`)
      return new Response(`${error}`, { status: 500 })
    })
    .get('/', () => body as never, { response: { 200: checkedResponse(shape) } })
  const request = async (given: unknown) => {
    body = given
    const response = await app.handle(new Request('http://localhost/'))
    return { status: response.status, text: await response.text() }
  }
  for (let times = 0; times < REQUESTS; times += 1) {
    const right = { servers: [{ id: `srv_${times}` }] }
    expect(await request(right)).toEqual({ status: 200, text: JSON.stringify(right) })
    expect((await request({ ...right, more: 1 })).status).toBe(500)
    // The log of a failure names the field.
    const wrong = await request({ servers: [{ id: times }] })
    expect(wrong.status).toBe(500)
    expect(wrong.text).toContain('/servers/0/id')
  }
  expect(failures).toEqual(Array.from({ length: 2 * REQUESTS }, () => 'VALIDATION'))
  // Documents show the same schema.
  expect(JSON.stringify(shape)).toBe(before)
})
