import { expect, test } from 'bun:test'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { firstLine, type KeyedInfo } from '../support/berth.ts'
import { projectPorts } from '../support/ports.ts'
import { until } from '../support/processes.ts'
import { call, cleanEnvironment, command, serve } from '../support/serve.ts'

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

const prlimit = Bun.which('prlimit')

/** Has a process open no more files; returns what lets it again. */
function openNoMore(pid: number): () => void {
  const open = new Set(readdirSync(`/proc/${pid}/fd`).map(Number))
  let free = 0
  while (open.has(free)) free += 1
  const [, soft = '', hard = ''] =
    /^Max open files +(\d+) +(\d+)/m.exec(readFileSync(`/proc/${pid}/limits`, 'utf8')) ?? []
  const set = (most: string): void => {
    expect(Bun.spawnSync([prlimit ?? '', `--pid=${pid}`, `--nofile=${most}:${hard}`]).exitCode).toBe(0)
  }
  set(String(free))
  return () => set(soft)
}

test.skipIf(prlimit === null)(
  'a server that ends while no file can be opened ends alone',
  async () => {
    const dataDir = mkdtempSync(join(tmpdir(), 'berth-files-'))
    // Without isolation a command can end sandboxd.
    const berth = serve(['--data', dataDir, '--port', '0', '--isolation', 'none'])
    try {
      const info = await berth.ready
      const [ending, other] = [
        (await call(info, 'POST', '/servers')).body.id,
        (await call(info, 'POST', '/servers')).body.id,
      ]
      const go = join(dataDir, 'servers', ending, 'workspace', 'go')
      const exec = (id: string, command: string) => call(info, 'POST', `/servers/${id}/exec`, { command })
      const { body } = await exec(
        ending,
        '(while [ ! -e go ]; do sleep 0.01; done; kill -9 $PPID) > /dev/null 2>&1 & echo $PPID',
      )
      await exec(other, 'sleep 600 > /dev/null 2>&1 & echo $! > pid')
      const openAgain = openNoMore(berth.child.pid)
      writeFileSync(go, '')
      await until(() => !existsSync(`/proc/${body.stdout.trim()}`), 'sandboxd to end')
      await Bun.sleep(200)
      expect(berth.child.exitCode).toBe(null)
      openAgain()
      expect((await exec(other, 'kill -0 $(cat pid)')).body.exitCode).toBe(0)
      await until(
        async () => (await call(info, 'GET', `/servers/${ending}`)).body.server.status === 'sleeping',
        'the server to have ended',
      )
      expect((await exec(ending, 'echo again')).body.stdout).toBe('again\n')
    } finally {
      berth.child.kill('SIGTERM')
      await berth.child.exited
      rmSync(dataDir, { recursive: true, force: true })
    }
  },
  60_000,
)
