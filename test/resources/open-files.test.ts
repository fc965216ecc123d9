import { expect, test } from 'bun:test'
import { firstLine, type KeyedInfo } from '../support/berth.ts'
import { projectPorts } from '../support/ports.ts'
import { call, cleanEnvironment, command } from '../support/serve.ts'

// Soft limits are raised, hard ones hold.
const LIMITED = 'ulimit -Sn 64 && ulimit -Hn 512 && exec "$@"'

test.skipIf(process.platform !== 'linux')(
  'a server that would take the last descriptors is refused with the remedy, and requests are answered',
  async () => {
    const args = [
      '--ephemeral',
      '--port',
      '0',
      '--project-ports',
      projectPorts(),
      '--plan',
      '{"servers":100}',
    ]
    const child = Bun.spawn(['/bin/sh', '-c', LIMITED, 'sh', ...command, 'serve', '--json', ...args], {
      stdio: ['ignore', 'pipe', 'ignore'],
      env: cleanEnvironment(),
    })
    try {
      const info = JSON.parse((await firstLine(child.stdout)) ?? '{}') as KeyedInfo
      const made: string[] = []
      let refusal: string | null = null
      while (refusal === null && made.length < 100) {
        const { status, body } = await call(info, 'POST', '/servers')
        if (status === 201) made.push(body.id)
        else refusal = body.message
      }
      expect(made.length).toBeGreaterThan(10)
      expect(refusal).toContain('as many files open as the system allows, 512')
      expect(refusal).toContain('ulimit -n')
      const lists = await Promise.all(Array.from({ length: 20 }, () => call(info, 'GET', '/servers')))
      for (const { body } of lists) expect(body.servers).toHaveLength(made.length)
      for (const id of made.slice(0, 3)) await call(info, 'DELETE', `/servers/${id}`)
      expect((await call(info, 'POST', '/servers')).status).toBe(201)
    } finally {
      child.kill()
      await child.exited
    }
  },
  120_000,
)
