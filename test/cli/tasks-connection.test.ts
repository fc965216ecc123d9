import { expect, test } from 'bun:test'
import { type Outcome, serve, start } from './command.ts'

const GOAL =
  'run: for n in 1 2 3 4 5 6; do echo line $n; sleep 0.2; done\nrun: echo more\ncomplete: all of it'

test.each(['terminate', 'end'] as const)(
  'a task is followed on where the connection is cut, and nothing is shown twice or missed (%s)',
  async (how) => {
    await using berth = await serve()
    await berth.server()
    using between = cutting(berth.info.base_url, how)
    const args = ['tasks', 'run', GOAL, '--base-url', between.url, '--api-key', berth.info.api_key]
    const { exitCode, stdout, stderr } = await berth.run(args)
    expect({ exitCode, stdout }).toEqual({ exitCode: 0, stdout: 'all of it\n' })
    expect([...stderr.matchAll(/line \d$/gm)].map(String)).toEqual([1, 2, 3, 4, 5, 6].map((n) => `line ${n}`))
    expect(stderr).toEndWith('▸ $ echo more\n  │ more\n✓ completed\n')
    expect(between.cuts()).toBeGreaterThan(0)
  },
)

test('reports a berth that does not come back', async () => {
  await using berth = await serve()
  await berth.server()
  const between = cutting(berth.info.base_url, 'terminate')
  const args = ['tasks', 'run', 'run: sleep 60', '--base-url', between.url, '--api-key', berth.info.api_key]
  const followed = berth.run(args)
  await between.cut
  between[Symbol.dispose]()
  const { exitCode, stderr } = await followed
  expect(exitCode).toBe(1)
  expect(stderr).toContain(`The connection to ${between.url} broke`)
}, 120_000)

test('reports a key that is deleted while its task is followed, and tries nothing again', async () => {
  await using berth = await serve()
  await berth.server()
  const { id, key } = JSON.parse((await berth.run(['keys', 'create', 'follows', '--json'])).stdout)
  const child = start(['tasks', 'run', 'run: sleep 60', '--base-url', berth.info.base_url, '--api-key', key])
  let stderr = ''
  let removed: Outcome | undefined
  for await (const piece of child.stderr.pipeThrough(new TextDecoderStream())) {
    stderr += piece
    if (stderr.includes('▸ $ sleep 60')) removed ??= await berth.run(['keys', 'rm', id])
  }
  expect(removed?.exitCode).toBe(0)
  expect(await child.exited).toBe(1)
  expect(stderr).toContain('was ended')
})

/** What stands between a command and berth, and cuts each stream after 500 ms. */
function cutting(target: string, how: 'terminate' | 'end') {
  const { hostname, port } = new URL(target)
  let cuts = 0
  const { promise: cut, resolve } = Promise.withResolvers<void>()
  const listener = Bun.listen<{ up: Promise<Bun.Socket> }>({
    hostname: '127.0.0.1',
    port: 0,
    socket: {
      open(down) {
        const up = Bun.connect({
          hostname,
          port: Number(port),
          socket: { data: (_, data) => void down.write(data), close: () => void down.end() },
        })
        down.data = { up }
      },
      async data(down, data) {
        const up = await down.data.up
        up.write(data)
        if (!data.toString().includes('text/event-stream')) return
        setTimeout(() => {
          cuts += 1
          resolve()
          down[how]()
          up.end()
        }, 500)
      },
      close: (down) => void down.data.up.then((up) => up.end()),
    },
  })
  return {
    url: `http://127.0.0.1:${listener.port}`,
    cut,
    cuts: () => cuts,
    [Symbol.dispose]: () => listener.stop(true),
  }
}
