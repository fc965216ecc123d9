import { afterAll, describe, expect, test } from 'bun:test'
import { createApi } from '../src/api.ts'
import { TaskStore } from '../src/tasks.ts'

const server = createApi({ hostname: '127.0.0.1', port: 0, tasks: new TaskStore(3) })
afterAll(() => server.stop(true))

async function call(method: string, path: string, body?: unknown) {
  const init = { method, headers: { 'content-type': 'application/json' } }
  const response = await fetch(
    new URL(path, server.url),
    body === undefined ? init : { ...init, body: JSON.stringify(body) },
  )
  const text = await response.text()
  return { status: response.status, headers: response.headers, body: text ? JSON.parse(text) : null }
}

describe('tasks', () => {
  test('are made, read, changed, listed and removed', async () => {
    const made = await call('POST', '/tasks', { title: ' Water the plants ' })
    expect(made.status).toBe(201)
    expect(made.body).toMatchObject({ title: 'Water the plants', done: false })
    const path = made.headers.get('location') ?? ''
    expect((await call('GET', path)).body).toEqual(made.body)
    expect((await call('PATCH', path, { done: true })).body).toEqual({ ...made.body, done: true })
    expect((await call('GET', '/tasks?done=true')).body.tasks).toHaveLength(1)
    expect((await call('GET', '/tasks?done=false')).body.tasks).toEqual([])
    expect((await call('DELETE', path)).status).toBe(204)
    expect(await call('GET', path)).toMatchObject({ status: 404, body: { error: 'not_found' } })
  })

  test.each([
    ['no object', [1]],
    ['no title', {}],
    ['an empty title', { title: '  ' }],
    ['a long title', { title: 'x'.repeat(201) }],
    ['a title that is no text', { title: 5 }],
    ['done that is no boolean', { title: 'x', done: 'yes' }],
    ['an unknown field', { title: 'x', colour: 'red' }],
  ])('with %s are refused', async (_name, body) => {
    expect(await call('POST', '/tasks', body)).toMatchObject({ status: 400, body: { error: 'bad_request' } })
    expect((await call('GET', '/tasks')).body.tasks).toEqual([])
  })

  test('over the limit are refused', async () => {
    for (let n = 0; n < 3; n++) expect((await call('POST', '/tasks', { title: 'x' })).status).toBe(201)
    expect(await call('POST', '/tasks', { title: 'x' })).toMatchObject({
      status: 409,
      body: { error: 'too_many_tasks' },
    })
  })
})

describe('every answer is JSON', () => {
  test('of the health check and the overview', async () => {
    expect(await call('GET', '/health')).toMatchObject({ status: 200, body: { status: 'ok' } })
    expect((await call('GET', '/')).body.endpoints).toContain('GET /health')
  })

  test('of an unknown path, another method and a broken body', async () => {
    expect(await call('GET', '/nowhere')).toMatchObject({ status: 404, body: { error: 'not_found' } })
    const refused = await call('DELETE', '/tasks')
    expect(refused).toMatchObject({ status: 405, body: { error: 'method_not_allowed' } })
    expect(refused.headers.get('allow')).toBe('GET, POST')
    const broken = await fetch(new URL('/tasks', server.url), {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: '{',
    })
    expect(broken.status).toBe(400)
    const untyped = await fetch(new URL('/tasks', server.url), { method: 'POST', body: '{}' })
    expect(untyped.status).toBe(415)
  })
})
