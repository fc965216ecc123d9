import { heapStats } from 'bun:jsc'
import { expect, test } from 'bun:test'
import { HostedEmulator } from '../../../src/compute/emulators/hosted-emulator.ts'
import type { EmulatorRequest, EmulatorResults } from '../../../src/compute/emulators/protocol.ts'
import { TerminalOutput, type TerminalStep } from '../../support/terminal-output.ts'
import { rounds } from '../../support/thorough.ts'

/** How long it is tried. */
const DURATION_MS = rounds({ usually: 8_000, inCi: 20_000, withAll: 300_000 })

/** Steps of one terminal. */
const STEPS = 100

/** Most bytes that one emulator may take: its cells, and what else a cell may have (docs/terminals.md). */
const MOST_BYTES = 24 * 2 ** 20

/** To try again what has failed, give the seed that was printed. */
const FIRST_SEED = Number(process.env.BERTH_FUZZ_SEED ?? Date.now() % 1_000_000_000)

/** Terminals that took long to become narrower, tried first: minutes to one column, and 13 s from the widest to 20. */
const KNOWN_SEEDS = [864_411_289, 100_000_015]

type Size = Extract<EmulatorRequest, { kind: 'open' }>['size']

/** An emulator that is driven as the Worker drives it. */
class Driven {
  readonly faults: string[] = []
  readonly #emulator: HostedEmulator

  constructor(size: Size) {
    this.#emulator = new HostedEmulator(size, true, {
      answered: () => {},
      failed: (error) => this.faults.push(String(error instanceof Error ? error.stack : error)),
    })
  }

  ask(request: EmulatorRequest): Promise<EmulatorResults[keyof EmulatorResults]> {
    return new Promise((resolve) => this.#emulator.handle(request, resolve))
  }

  async apply(step: TerminalStep): Promise<void> {
    if ('size' in step) await this.ask({ id: 1, kind: 'resize', size: sizeOf(step.size) })
    else await this.ask({ id: 1, kind: 'write', data: new Uint8Array(step.output) })
  }

  close(): void {
    this.#emulator.handle({ id: 1, kind: 'close' }, () => {})
  }
}

const sizeOf = (size: { columns: number; rows: number }): Size => {
  const most = Math.floor((4 * 2 ** 20) / 12 / size.columns)
  const rows = Math.min(size.rows, most)
  return { columns: size.columns, rows, scrollback: Math.min(500, most - rows) }
}

function bytesInUse(): number {
  Bun.gc(true)
  return heapStats().heapSize
}

test(
  'no output and no size makes an emulator fail, or takes more memory than its bound',
  async () => {
    console.log(`BERTH_FUZZ_SEED=${FIRST_SEED}`)
    const late: string[] = []
    const onLate = (error: unknown) => late.push(String(error))
    process.on('uncaughtException', onLate)
    const end = performance.now() + DURATION_MS
    const known = [...KNOWN_SEEDS]
    let next = FIRST_SEED
    do {
      const seed = known.shift() ?? next++
      const output = new TerminalOutput(seed)
      const isMeasured = (seed - FIRST_SEED) % 10 === 0
      const before = isMeasured ? bytesInUse() : 0
      const driven = new Driven(sizeOf(output.size()))
      for (let step = 0; step < STEPS && driven.faults.length === 0; step += 1)
        await driven.apply(output.step())
      if (isMeasured) await driven.apply({ output: output.unended() })
      const read = await driven.ask({ id: 1, kind: 'read', lines: 10 })
      const screen = await driven.ask({ id: 1, kind: 'serialize' })
      const taken = isMeasured ? bytesInUse() - before : 0
      // With the seed, so that a failure says which one it was.
      expect({
        seed,
        faults: [...driven.faults, ...late],
        read: read !== null,
        screen: screen !== null,
      }).toEqual({
        seed,
        faults: [],
        read: true,
        screen: true,
      })
      expect(taken, `bytes taken with seed ${seed}`).toBeLessThan(MOST_BYTES)
      driven.close()
    } while (performance.now() < end)
    process.off('uncaughtException', onLate)
  },
  10 * DURATION_MS + 60_000,
)
