import { describe, expect, test } from 'bun:test'
import { StartupError } from '../../src/errors.ts'
import { Lazy } from '../../src/runtime/lazy.ts'
import { createLogger } from '../../src/runtime/logger.ts'
import type { Service } from '../../src/runtime/service.ts'
import { Supervisor } from '../../src/runtime/supervisor.ts'

describe('a supervisor', () => {
  test('recovers and starts services in their order, and stops them in reverse', async () => {
    const { calls, service, supervise } = world()
    const supervisor = supervise(service('a'), service('b'), service('c'))
    await supervisor.recover()
    await supervisor.start()
    await supervisor.stop()
    expect(calls).toEqual([
      ...['recover a', 'recover b', 'recover c'],
      ...['start a', 'start b', 'start c'],
      ...['stop c', 'stop b', 'stop a'],
    ])
  })

  test('starts the next service only when the one before has started', async () => {
    const { calls, service, supervise } = world()
    const { promise, resolve } = Promise.withResolvers<void>()
    const supervisor = supervise({ ...service('slow'), start: () => promise }, service('next'))
    const starting = supervisor.start()
    await Promise.resolve()
    expect(calls).toEqual([])
    expect(supervisor.started).toBe(false)
    resolve()
    await starting
    expect(calls).toEqual(['start next'])
    expect(supervisor.started).toBe(true)
  })

  test('names the service that does not start, and starts none behind it', async () => {
    const { calls, service, supervise } = world()
    const cause = new Error('no disk')
    const failing = { ...service('sites'), start: () => Promise.reject(cause) }
    const error = await supervise(service('a'), failing, service('b'))
      .start()
      .catch((reason) => reason)
    expect(error.message).toBe('sites could not start: no disk')
    expect(error.cause).toBe(cause)
    expect(calls).toEqual(['start a'])
  })

  test('leaves an error for the person who starts berth as it is', async () => {
    const { service, supervise } = world()
    const error = new StartupError('Port 4747 is taken.')
    const supervisor = supervise({ ...service('a'), recover: () => Promise.reject(error) })
    expect(await supervisor.recover().catch((reason) => reason)).toBe(error)
  })

  test('stops the other services when one cannot be stopped, and logs its name', async () => {
    const { calls, lines, service, supervise } = world()
    const failing = { ...service('tasks'), stop: () => Promise.reject(new Error('stuck')) }
    await supervise(service('a'), failing, service('b')).stop()
    expect(calls).toEqual(['stop b', 'stop a'])
    expect(lines.join('')).toContain('tasks could not be stopped')
    expect(lines.join('')).toContain('stuck')
  })

  test('gives up a start under way when it stops, and stops what has not started too', async () => {
    const { calls, service, supervise } = world()
    const { promise, resolve } = Promise.withResolvers<void>()
    const slow: Service = { name: 'slow', start: () => promise, stop: resolve }
    const supervisor = supervise(service('a'), slow, service('b'))
    const starting = supervisor.start()
    await supervisor.stop()
    await starting
    expect(supervisor.aborted.aborted).toBe(true)
    expect(supervisor.started).toBe(false)
    expect(calls).toEqual(['start a', 'stop b', 'stop a'])
  })

  test('stops once, however often it is asked to', async () => {
    const { calls, service, supervise } = world()
    const supervisor = supervise(service('a'))
    await Promise.all([supervisor.stop(), supervisor.stop()])
    expect(calls).toEqual(['stop a'])
  })
})

describe('a service that is loaded on first use', () => {
  test('is loaded once', async () => {
    let loads = 0
    const lazy = new Lazy(async () => ({ number: ++loads }))
    expect(lazy.loaded).toBeUndefined()
    const all = await Promise.all([lazy.get(), lazy.get()])
    expect(all).toEqual([{ number: 1 }, { number: 1 }])
    expect(lazy.loaded).toEqual({ number: 1 })
  })

  test('is not loaded by a start that does not need it, nor by a stop', async () => {
    const { calls, service } = world()
    const lazy = new Lazy(async () => service('builds'))
    const listed = lazy.service('builds', (inner) => inner, { start: () => false })
    await listed.recover?.()
    await listed.start?.()
    await listed.stop?.()
    expect(lazy.loaded).toBeUndefined()
    expect(calls).toEqual([])
  })

  test('is loaded for the steps that need it', async () => {
    const { calls, service } = world()
    const lazy = new Lazy(async () => service('builds'))
    const listed = lazy.service('builds', (inner) => inner, { recover: () => true, start: () => true })
    await listed.recover?.()
    await listed.start?.()
    await listed.stop?.()
    expect(calls).toEqual(['recover builds', 'start builds', 'stop builds'])
  })

  test('is stopped before anybody gets it, if it is loaded after the stop', async () => {
    const { calls, service } = world()
    const lazy = new Lazy(async () => service('tasks'))
    await lazy.service('tasks', (inner) => inner).stop?.()
    await lazy.get()
    expect(calls).toEqual(['stop tasks'])
  })
})

function world() {
  const calls: string[] = []
  const lines: string[] = []
  const logger = createLogger('error', (line) => lines.push(line), Date.now)
  const service = (name: string): Service => ({
    name,
    recover: () => void calls.push(`recover ${name}`),
    start: () => void calls.push(`start ${name}`),
    stop: () => void calls.push(`stop ${name}`),
  })
  const supervise = (...services: Service[]): Supervisor => new Supervisor(services, logger)
  return { calls, lines, service, supervise }
}
