import { expect, spyOn, test } from 'bun:test'
import { Elysia } from 'elysia'
import { composeApp } from '../../src/instance/compose-app.ts'

const appOf = () => new Elysia().get('/', () => 'here')

test('an app is composed without a collection of garbage, which Elysia asks for', async () => {
  const collect = spyOn(Bun, 'gc').mockImplementation(() => {})
  try {
    const app = appOf()
    composeApp(app)
    expect(collect).not.toHaveBeenCalled()
    expect(await (await app.handle(new Request('http://berth/'))).text()).toBe('here')
    expect(collect).not.toHaveBeenCalled()

    // If this fails, Elysia has stopped asking, and composeApp can go.
    void appOf().fetch
    expect(collect).toHaveBeenCalledTimes(1)
  } finally {
    collect.mockRestore()
  }
})
