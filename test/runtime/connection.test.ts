import { expect, test } from 'bun:test'
import { existsSync } from 'node:fs'
import { newSocketForServers } from '../../src/runtime/connection.ts'

test.each(['linux', 'darwin'] as const)(
  'on %s a program can listen at the socket for servers, and it goes with the listener',
  async (platform) => {
    const unix = newSocketForServers(platform)
    expect(unix).not.toBe(newSocketForServers(platform))
    // The length of sun_path on macOS, with its end, where its directory for temporary files has 49 bytes.
    expect(unix.split('/').at(-1)?.length).toBeLessThan(104 - 49 - 1)
    const server = Bun.serve({ unix, fetch: () => new Response('berth') } as never)
    expect(await (await fetch('http://berth/', { unix })).text()).toBe('berth')
    await server.stop(true)
    expect(existsSync(unix.replace('\0', '/'))).toBe(false)
  },
)
