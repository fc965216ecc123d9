import { expect, test } from 'bun:test'
import { mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Aside, GoLibrary } from '../../../src/hosting/registries/programs/go-library.ts'
import { createLogger } from '../../../src/runtime/logger.ts'

const program = Bun.which('go')
if (program === null)
  console.error("SKIP Go's compiled library without a sandbox: there is no go on this machine")
const goTest = program === null ? test.skip : test

/** Asks for a library that cannot be made, and returns what is left and logged. */
async function ask(aside: Aside, { isFull = false } = {}) {
  const tools = mkdtempSync(join(tmpdir(), 'berth-go-'))
  try {
    if (!isFull) mkdirSync(join(tools, 'programs'))
    const said: string[] = []
    const logger = createLogger('warn', (line) => void said.push(line), Date.now)
    const machine = { path: process.env.PATH ?? '', variables: {}, dataDir: tools }
    const library = new GoLibrary({ tools, aside: () => aside, machine, logger })
    const found = await library.find(new URLSearchParams({ program: program ?? '', cgo: '0', compile: '1' }))
    return { found, said: said.join(''), left: readdirSync(tools, { recursive: true }) }
  } finally {
    rmSync(tools, { recursive: true })
  }
}

goTest.each([
  ['there is no sandbox', async () => null, {}],
  ['the sandbox fails', () => Promise.reject(new Error('The service is stopping.')), {}],
  ['nothing can be written', async () => null, { isFull: true }],
] as [string, Aside, object][])(
  'servers get no library, and berth says so, if %s',
  async (_, aside, options) => {
    const { found, said, left } = await ask(aside, options)
    expect(found).toBeNull()
    expect(said).toContain('each compiles it for itself')
    expect(left.filter((name) => name !== 'programs')).toEqual([])
  },
)
