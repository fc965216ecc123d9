import { afterAll, describe, expect, test } from 'bun:test'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { release, version } from './facts.ts'
import { Machine } from './support.ts'

const script = readFileSync(join(release, 'install.sh'), 'utf8')
const archive = `berth-${version}-linux-x64.tar.gz`
const whole = readFileSync(join(release, archive))

/** What the server sends of the archive, by the path before its name. */
const bodies: Record<string, () => Response> = {
  '/whole': () => new Response(whole),
  '/changed': () => {
    const bytes = Buffer.from(whole)
    bytes.writeUInt8(bytes.readUInt8(1_000_000) ^ 1, 1_000_000)
    return new Response(bytes)
  },
}
const server = Bun.serve({
  hostname: '127.0.0.1',
  port: 0,
  fetch({ url }) {
    const { pathname } = new URL(url)
    const directory = pathname.slice(0, pathname.lastIndexOf('/'))
    const tenths = /^\/cut-(\d)$/.exec(directory)?.[1]
    if (pathname.endsWith(archive) && tenths !== undefined)
      return new Response(whole.subarray(0, (whole.length * Number(tenths)) / 10))
    const body = pathname.endsWith(archive) ? bodies[directory] : undefined
    return body?.() ?? new Response('Not found.', { status: 404 })
  },
})
afterAll(() => server.stop(true))

/** Runs a script as `curl … | sh` does. */
const install = (machine: Machine, from: string, text = script, env: Record<string, string> = {}) =>
  machine.run(['sh'], {
    stdin: text,
    env: {
      BERTH_DOWNLOAD_URL: from.startsWith('/') ? `http://127.0.0.1:${server.port}${from}` : from,
      ...env,
    },
  })

/** The files of ~/.local/bin; none if it is not there. */
const installed = (machine: Machine): string[] => {
  const place = join(machine.path, '.local/bin')
  return existsSync(place) ? readdirSync(place).sort() : []
}

describe('install.sh', () => {
  test('installs into ~/.local/bin, and berth runs there; again replaces it', async () => {
    using machine = new Machine()
    const { exitCode, stderr } = await install(machine, '/whole')
    expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: expect.stringContaining('is not in PATH') })
    expect(installed(machine)).toEqual(['berth'])
    const berth = join(machine.path, '.local/bin/berth')
    await machine.output([berth, 'run', '--', 'true'])
    const facts = JSON.parse(await machine.output([berth, 'version', '--json']))
    expect(facts).toMatchObject({ version, installed_by: null })
    expect((await install(machine, '/whole')).exitCode).toBe(0)
    expect(installed(machine)).toEqual(['berth'])
  })

  test('installs nothing of a script that was cut at any tenth of it, or before its last line', async () => {
    using machine = new Machine()
    const ends = Array.from({ length: 10 }, (_, tenth) => Math.floor((script.length * tenth) / 10))
    for (const end of [...ends, script.lastIndexOf('main')]) {
      await install(machine, '/whole', script.slice(0, end))
      expect(installed(machine)).toEqual([])
    }
  }, 60_000)

  test('leaves what was there when the download is cut at any tenth, changed or missing', async () => {
    using machine = new Machine()
    const bin = join(machine.path, '.local/bin')
    mkdirSync(bin, { recursive: true })
    writeFileSync(join(bin, 'berth'), 'the one before')
    const places = Array.from({ length: 10 }, (_, tenth) => `/cut-${tenth}`)
    for (const place of [...places, '/changed', '/missing']) {
      const { exitCode, stderr } = await install(machine, place)
      expect(exitCode).toBe(1)
      expect(stderr).toMatch(
        place === '/missing' ? /cannot be downloaded/ : /expected was .*nothing was installed/,
      )
      expect(installed(machine)).toEqual(['berth'])
      expect(readFileSync(join(bin, 'berth'), 'utf8')).toBe('the one before')
    }
  }, 60_000)

  test('downloads by https, and by http only from this machine', async () => {
    using machine = new Machine()
    for (const url of [
      'http://example.com',
      'http://127.0.0.1.example.com',
      'http://127.0.0.1:80@example.com',
      'http://localhostess',
      'ftp://127.0.0.1',
      'file:///tmp',
    ]) {
      const { exitCode, stderr } = await install(machine, url)
      expect({ exitCode, stderr }).toEqual({
        exitCode: 1,
        stderr: expect.stringContaining('BERTH_DOWNLOAD_URL'),
      })
    }
    expect(installed(machine)).toEqual([])
  })

  test('downloads by wget where there is no curl, and says what is missing without either', async () => {
    using machine = new Machine()
    const tools = join(machine.path, 'tools')
    mkdirSync(tools)
    for (const tool of [
      'sh',
      'uname',
      'sed',
      'mkdir',
      'mktemp',
      'rm',
      'sha256sum',
      'cut',
      'tar',
      'gzip',
      'chmod',
      'mv',
      'tr',
    ])
      symlinkSync(Bun.which(tool) ?? `/bin/${tool}`, join(tools, tool))
    const without = await install(machine, '/whole', script, { PATH: tools })
    expect(without.stderr).toContain('no curl and no wget')
    expect(installed(machine)).toEqual([])
    const wget = Bun.which('wget')
    if (wget === null) return
    symlinkSync(wget, join(tools, 'wget'))
    expect((await install(machine, '/whole', script, { PATH: tools })).exitCode).toBe(0)
    expect(installed(machine)).toEqual(['berth'])
  })

  test('names another system, and a directory that cannot be written', async () => {
    using machine = new Machine()
    const tools = join(machine.path, 'tools')
    mkdirSync(tools)
    writeFileSync(join(tools, 'uname'), '#!/bin/sh\n[ "$1" = -s ] && echo Plan9 || echo mips\n')
    chmodSync(join(tools, 'uname'), 0o755)
    const other = await install(machine, '/whole', script, { PATH: `${tools}:${machine.env.PATH}` })
    expect(other.stderr).toContain('not on Plan9')
    const full = await install(machine, '/whole', script, { BERTH_INSTALL_DIR: '/proc/none' })
    expect(full.stderr).toContain('/proc/none cannot be made')
  })
})
