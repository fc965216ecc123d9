import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { startInstance, temporaryFolder } from './instance.ts'
import { CONNECTIONS, downloadRate, program, requestRate } from './load.ts'
import { median, print, type Row, times } from './measure.ts'

const ROUNDS = 5

/** The files that are served, by their names: bytes of each. */
const FILES = { 'index.html': 4_000, 'assets/app.js': 60_000, 'assets/large.bin': 20_000_000 }

const bare = (folder: string): string => `
const server = Bun.serve({ hostname: '127.0.0.1', port: 0, fetch(request) {
  const path = request.url.slice(request.url.indexOf('/', 7))
  return new Response(Bun.file(${JSON.stringify(folder)} + (path === '/' ? '/index.html' : path)))
} })
console.log(server.port)`

/** Files that berth serves against the least that a program under Bun needs to serve them. */
export async function benchStatic(): Promise<void> {
  using folder = temporaryFolder()
  await using berth = await startInstance(undefined, ['--project-ports', '6500-6599'])
  const { id: server } = await berth.call('POST', '/servers')
  mkdirSync(join(folder.path, 'assets'))
  for (const [path, size] of Object.entries(FILES)) {
    const content = 'x'.repeat(size)
    writeFileSync(join(folder.path, path), content)
    await berth.call('PUT', `/servers/${server}/files`, { path, content })
  }
  const { url } = await berth.call('POST', `/servers/${server}/deployments`)
  await using baseline = await program(bare(folder.path))
  const direct = `http://127.0.0.1:${baseline.port}/`

  const measure = async (path: string, of: (url: string) => Promise<number>) => {
    const rates = { berth: [] as number[], bare: [] as number[] }
    for (let round = 0; round < ROUNDS; round++) {
      rates.bare.push(await of(direct + path))
      rates.berth.push(await of(url + path))
    }
    return { berth: median(rates.berth), bare: median(rates.bare) }
  }
  const row = (what: string, { berth, bare }: { berth: number; bare: number }): Row => ({
    what,
    measured: berth.toFixed(0),
    baseline: `bare Bun.serve with Bun.file: ${bare.toFixed(0)}`,
    ratio: times(berth / bare),
    goal: '≥ 0.50 ×',
    met: berth / bare >= 0.5,
  })
  print(`Files, ${CONNECTIONS} connections (autocannon)`, [
    row('requests a second, a page of 4 kB', await measure('', requestRate)),
    row('requests a second, a script of 60 kB', await measure('assets/app.js', requestRate)),
    row('MB/s, one file of 20 MB', await measure('assets/large.bin', downloadRate)),
  ])
}
