import { expect, spyOn, test } from 'bun:test'
import { monthOf } from '../../../src/resources/accounts/credits.ts'
import { dayOf } from '../../../src/resources/accounts/daily-usage.ts'
import type { TierName } from '../../../src/resources/accounts/tiers.ts'
import { World } from './world.ts'

const SEQUENCES = 60
const STEPS = 45

/** Units a second by tier: a thousandth of a credit an hour is one. */
const RATES: Record<TierName, number> = { small: 1_000, medium: 2_000, large: 4_000 }
const UNITS = 3_600_000

interface ModelServer {
  id: string
  account: string
  rate: number
  running: boolean
  ranMs: number
  charged: number
}

/** The same in the simplest way there is: every millisecond is gone through. */
class Model {
  calendar: number
  readonly servers: ModelServer[] = []
  readonly caps = new Map<string, number>()
  readonly used: Record<string, number> = {}
  readonly days: Record<string, number> = {}
  readonly quota: string[] = []
  readonly #told = new Set<string>()

  constructor(now: number) {
    this.calendar = now
  }

  isCapped(account: string): boolean {
    return this.#usedBy(account) >= this.#capOf(account)
  }

  pass(ms: number): void {
    for (let n = 0; n < ms; n++) {
      const month = monthOf(this.calendar)
      const day = dayOf(this.calendar)
      this.calendar += 1
      const charged = new Set<string>()
      for (const server of this.servers.filter(({ running }) => running)) {
        server.ranMs += 1
        if (server.ranMs % 1_000 !== 0) continue
        server.charged += server.rate
        const key = `${server.account} ${month}`
        this.used[key] = (this.used[key] ?? 0) + server.rate
        const onDay = `${server.account} ${day}`
        this.days[onDay] = (this.days[onDay] ?? 0) + server.rate
        charged.add(server.account)
      }
      for (const account of charged) this.notify(account, month)
      for (const account of this.caps.keys()) this.sleepAtCap(account, month)
    }
  }

  notify(account: string, month = monthOf(this.calendar)): void {
    const cap = this.#capOf(account)
    const used = this.#usedBy(account, month)
    for (const [event, mark] of [
      ['quota.threshold', 0.8 * cap],
      ['quota.cap_reached', cap],
    ] as const) {
      const name = `${event} ${account} ${month} ${cap}`
      if (used < mark || this.#told.has(name)) continue
      this.#told.add(name)
      this.quota.push(`${event} ${account} ${this.calendar} ${cap / UNITS}`)
    }
  }

  sleepAtCap(account: string, month = monthOf(this.calendar)): void {
    if (this.#usedBy(account, month) < this.#capOf(account)) return
    for (const server of this.servers) if (server.account === account) server.running = false
  }

  #usedBy(account: string, month = monthOf(this.calendar)): number {
    return this.used[`${account} ${month}`] ?? 0
  }

  #capOf(account: string): number {
    return this.caps.get(account) ?? 0
  }
}

/** A generator that repeats (mulberry32). */
function numbers(seed: number): (below: number) => number {
  let state = seed
  return (below) => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) % below
  }
}

/** Long enough for several events to race, short enough to be gone through by the millisecond. */
const delay = (pick: (below: number) => number) => (pick(3) === 0 ? pick(1_200) : pick(15_000))

/** Keeps the heartbeat, which is physical, from beating: on a busy machine a life takes longer than a second. */
function withoutHeartbeat(): Disposable {
  const never = () => setTimeout(() => {}, 2 ** 31 - 1)
  return spyOn(globalThis, 'setInterval').mockImplementation(never as typeof setInterval)
}

test(`${SEQUENCES} random lives of two accounts are charged as arithmetic says`, async () => {
  using _ = withoutHeartbeat()
  for (let seed = 1; seed <= SEQUENCES; seed++) {
    const pick = numbers(seed)
    const start = Date.UTC(2030, 1, 1) - 20_000 - pick(60_000)
    using world = new World(start)
    const model = new Model(start)
    const story: string[] = []
    for (const account of ['a', 'b']) {
      const cap = (10 + pick(90)) / 1_000
      world.account(account, cap)
      model.caps.set(account, Math.round(cap * UNITS))
      for (const tier of ['small', 'medium', 'large'] as const) {
        const id = `${account}-${tier}`
        world.server(id, account, tier)
        model.servers.push({ id, account, rate: RATES[tier], running: false, ranMs: 0, charged: 0 })
      }
    }
    for (let step = 0; step < STEPS; step++) {
      const server = model.servers[pick(model.servers.length)]
      if (!server) throw new Error('no server')
      const { id, account } = server
      const what = pick(12)
      if (what < 4) {
        story.push(`start ${id}`)
        if (model.isCapped(account)) expect(() => world.start(id)).toThrow('has used its budget')
        else {
          world.start(id)
          server.running = true
        }
      } else if (what < 5) {
        story.push(`stop ${id}`)
        world.records.markSleeping(id)
        server.running = false
      } else if (what < 6 && !model.isCapped(account)) {
        story.push(`restart ${id}`)
        world.records.markSleeping(id)
        world.start(id)
        server.running = true
      } else if (what < 7) {
        story.push('look')
        world.metering.accrue(account)
      } else if (what < 8) {
        const cap = (5 + pick(150)) / 1_000
        story.push(`cap of ${account} is ${cap}`)
        world.setCap(account, cap)
        await Promise.resolve().then(() => {})
        model.caps.set(account, Math.round(cap * UNITS))
        model.notify(account)
        model.sleepAtCap(account)
      } else if (what < 9 && step % 3 === 0) {
        const back = pick(2) === 0 ? pick(30_000) : pick(40 * 86_400_000)
        story.push(`back by ${back}`)
        await world.clock.set(world.clock.now() - back)
        model.calendar -= back
        for (const one of model.caps.keys()) {
          if (model.servers.some((s) => s.account === one && s.running)) model.sleepAtCap(one)
        }
      } else if (what < 10) {
        const down = pick(2) === 0 ? pick(10_000) : pick(86_400_000)
        story.push(`crash for ${down}`)
        // What a heartbeat does, which is physical: after it nothing is left to lose.
        for (const one of model.caps.keys()) world.metering.accrue(one, true)
        world.crash(down)
        model.calendar += down
        for (const one of model.caps.keys()) model.sleepAtCap(one)
      } else {
        const ms = delay(pick)
        story.push(`pass ${ms}`)
        await world.clock.advance(ms)
        model.pass(ms)
      }
      await Bun.sleep(0)
    }
    for (const account of model.caps.keys()) world.metering.accrue(account)
    const seen = {
      charged: world.charged(),
      used: world.used(),
      days: world.days(),
      running: world.running().sort(),
      quota: world.quota(),
      logged: world.logged,
    }
    const expected = {
      charged: Object.fromEntries(model.servers.map(({ id, charged }) => [id, charged])),
      used: Object.fromEntries(Object.entries(model.used).filter(([, used]) => used > 0)),
      days: model.days,
      running: model.servers
        .filter(({ running }) => running)
        .map(({ id }) => id)
        .sort(),
      quota: model.quota,
      logged: [],
    }
    if (!Bun.deepEquals(seen, expected)) console.error(`seed ${seed}: ${story.join('; ')}`)
    expect(seen).toEqual(expected)
  }
}, 120_000)
