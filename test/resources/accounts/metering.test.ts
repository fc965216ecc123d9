import { describe, expect, test } from 'bun:test'
import { toUnits } from '../../../src/resources/accounts/credits.ts'
import { SteerableClock } from '../../../src/runtime/clock.ts'
import { PretendedMachine } from '../../support/clock.ts'
import { World } from './world.ts'

const JANUARY = Date.UTC(2030, 0, 10)
const HOUR = 3_600_000
const DAY = 24 * HOUR

function world(cap: number, clock?: SteerableClock): World {
  const made = new World(JANUARY, clock)
  made.account('a', cap)
  made.server('s', 'a', 'small')
  made.server('m', 'a', 'medium')
  return made
}

describe('running time', () => {
  test('is charged by whole seconds; what is left of one is kept for the next run', async () => {
    using it = world(1_000)
    for (let n = 0; n < 10; n++) {
      it.start('s')
      await it.clock.advance(1_950)
      it.records.markSleeping('s')
      await it.clock.advance(500)
    }
    expect(it.charged().s).toBe(19 * 1_000)
  })

  test('of an hour costs what the plan says, to the unit', async () => {
    using it = world(1_000)
    it.start('s')
    it.start('m')
    await it.clock.advance(HOUR)
    it.metering.accrue('a')
    expect(it.charged()).toEqual({ s: toUnits(1), m: toUnits(2) })
    expect(it.metering.budget('a')).toEqual({ month: '2030-01', used: 3, cap: 1_000 })
  })

  test('of a server that is gone stays with the account', async () => {
    using it = world(1_000)
    it.start('s')
    await it.clock.advance(HOUR)
    const row = it.records.find('s')
    if (row) it.records.remove(row)
    expect(it.charged()).toEqual({ m: 0 })
    expect(it.metering.budget('a').used).toBe(1)
  })

  test('of a month is moved over without a tick for each second', async () => {
    using it = world(100_000)
    it.start('s')
    let looks = 0
    const charge = it.metering.accrue.bind(it.metering)
    it.metering.accrue = (...given) => {
      looks++
      charge(...given)
    }
    await it.clock.advance(60 * DAY)
    it.metering.accrue('a')
    expect(looks).toBeLessThan(10)
    expect(it.used()).toEqual({
      'a 2030-01': toUnits(22 * 24),
      'a 2030-02': toUnits(28 * 24),
      'a 2030-03': toUnits(10 * 24),
    })
  })

  test('belongs to the month in which its second ends', async () => {
    using it = world(1_000)
    await it.clock.set(Date.UTC(2030, 1, 1) - 10_500)
    it.start('s')
    await it.clock.advance(20_000)
    it.metering.accrue('a')
    expect(it.used()).toEqual({ 'a 2030-01': 10_000, 'a 2030-02': 10_000 })
  })

  test('is lost in a crash only since the last heartbeat, and never charged twice', async () => {
    using it = world(1_000)
    for (let n = 0; n < 5; n++) {
      if (n === 0) it.start('s')
      await it.clock.advance(5_300)
      it.metering.accrue('a', true)
      await it.clock.advance(900)
      it.crash(DAY)
    }
    it.metering.accrue('a')
    expect(it.charged().s).toBe(Math.floor((5 * 5_300) / 1_000) * 1_000)
  })
})

describe('an idle server', () => {
  test('is not written while nobody asks, and charged to the second when somebody does', async () => {
    using it = world(1_000)
    it.start('s')
    const before = it.database.version()
    for (let n = 0; n < 50; n++) await it.clock.advance(60_700)
    expect(it.database.version()).toBe(before)
    it.metering.accrue('a')
    expect(it.charged().s).toBe(50 * 60_700)
  })

  test('is charged until berth was killed, once, and not while it was down', async () => {
    using it = world(1_000)
    it.start('s')
    for (let n = 0; n < 5; n++) {
      await it.clock.advance(HOUR)
      it.heartbeat.beat(it.clock.now())
      await it.clock.advance(900)
      it.crash(DAY)
      it.crash(DAY)
    }
    it.metering.accrue('a')
    expect(it.charged()).toEqual({ s: toUnits(5), m: 0 })
    expect(it.used()).toEqual({ 'a 2030-01': toUnits(5) })
  })

  test('that was killed keeps its begun second', async () => {
    using it = world(1_000)
    it.start('s')
    for (let n = 0; n < 10; n++) {
      await it.clock.advance(1_250)
      it.heartbeat.beat(it.clock.now())
      it.crash(500)
    }
    expect(it.charged().s).toBe(12_000)
  })

  test('that was killed with its account over the budget sleeps, and costs no more than the budget', async () => {
    using it = world(2)
    it.start('s')
    it.start('m')
    await it.clock.advance(1_000)
    it.heartbeat.beat(it.clock.now() + 10 * HOUR)
    it.crash(DAY)
    expect(it.running()).toEqual([])
    expect(it.used()).toEqual({ 'a 2030-01': toUnits(2) })
    expect(it.quota().length).toBe(2)
  })

  test('that was put to sleep before the kill is not charged', async () => {
    using it = world(1_000)
    it.start('s')
    await it.clock.advance(10_000)
    it.records.markSleeping('s')
    it.heartbeat.beat(it.clock.now() + HOUR)
    it.crash(DAY)
    expect(it.charged().s).toBe(10_000)
  })
})

describe("the machine's calendar", () => {
  test('adds nothing and loses nothing where it is corrected', async () => {
    const machine = new PretendedMachine(JANUARY)
    using it = world(1_000, new SteerableClock({ machine }))
    it.start('s')
    for (const correction of [DAY, -2 * DAY, 8 * HOUR, -5_000, 3_000]) {
      machine.pass(60_000)
      machine.correct(correction)
      it.clock.now()
      await Promise.resolve()
    }
    it.metering.accrue('a')
    expect(it.charged().s).toBe(5 * 60 * 1_000)
  })

  test('that jumps into another month charges there what is used from then on', async () => {
    const machine = new PretendedMachine(JANUARY)
    using it = world(1_000, new SteerableClock({ machine }))
    it.start('s')
    machine.pass(60_000)
    machine.correct(30 * DAY)
    expect(it.clock.now()).toBe(JANUARY + 60_000 + 30 * DAY)
    await Promise.resolve()
    machine.pass(30_000)
    it.metering.accrue('a')
    expect(it.used()).toEqual({ 'a 2030-01': 60_000, 'a 2030-02': 30_000 })
  })
})

describe('the budget', () => {
  test('ends to the second, however late that is noticed and however long a server takes to sleep', async () => {
    const machine = new PretendedMachine(JANUARY)
    using it = world(0.01, new SteerableClock({ machine }))
    const asleep = Promise.withResolvers<void>()
    it.metering.onCapReached(() => asleep.promise)
    it.start('s')
    machine.pass(500_000)
    it.metering.accrue('a')
    machine.pass(500_000)
    it.metering.accrue('a')
    expect(it.charged().s).toBe(36_000)
    expect(it.running()).toEqual(['s'])
    asleep.resolve()
  })

  test('that is raised while a server still falls asleep goes on being used from then on', async () => {
    using it = world(0.01)
    it.metering.onCapReached(async () => {})
    it.start('s')
    await it.clock.advance(100_000)
    it.setCap('a', 1)
    await it.clock.advance(5_000)
    it.metering.accrue('a')
    expect(it.charged().s).toBe(41_000)
  })

  test('is notified at 80 % and at its end, at that very second, and once', async () => {
    using it = world(1)
    it.start('s')
    await it.clock.advance(2 * HOUR)
    expect(it.quota()).toEqual([
      `quota.threshold a ${JANUARY + 0.8 * HOUR} 1`,
      `quota.cap_reached a ${JANUARY + HOUR} 1`,
    ])
    expect(it.running()).toEqual([])
    expect(() => it.start('s')).toThrow(
      'The account has used its budget of 1 credits for 2030-01. Raise its budget cap, or wait until 2030-02-01T00:00:00.000Z.',
    )
  })

  test('arms its notices anew for a cap that this month has not seen, and for a new month', async () => {
    using it = world(1)
    it.start('s')
    await it.clock.advance(HOUR)
    it.setCap('a', 2)
    it.setCap('a', 1)
    it.setCap('a', 1.2)
    it.setCap('a', 0.5)
    expect(it.quota().map((line) => line.replace(/ \d{10,}/, ''))).toEqual([
      'quota.threshold a 1',
      'quota.cap_reached a 1',
      'quota.threshold a 1.2',
      'quota.threshold a 0.5',
      'quota.cap_reached a 0.5',
    ])
    it.setCap('a', 1)
    await it.clock.set(Date.UTC(2030, 1, 1))
    it.start('s')
    await it.clock.advance(HOUR)
    expect(it.quota().slice(5)).toEqual([
      `quota.threshold a ${Date.UTC(2030, 1, 1) + 0.8 * HOUR} 1`,
      `quota.cap_reached a ${Date.UTC(2030, 1, 1) + HOUR} 1`,
    ])
  })

  test('is used by tasks and builds too', () => {
    using it = world(1)
    for (let n = 0; n < 3; n++) it.metering.charge('a', 's', 'task')
    it.metering.charge('a', 's', 'build')
    expect([it.metering.budget('a').used, it.quota().length, it.metering.isCapped('a')]).toEqual([
      0.8,
      1,
      false,
    ])
    it.metering.charge('a', 'm', 'build')
    expect([it.metering.budget('a').used, it.quota().length, it.metering.isCapped('a')]).toEqual([
      1.3,
      2,
      true,
    ])
    expect(it.charged()).toEqual({ s: toUnits(0.8), m: toUnits(0.5) })
  })

  test('a task that uses up the budget puts what runs to sleep', async () => {
    using it = world(0.1)
    it.start('s')
    it.metering.charge('a', 's', 'task')
    await Bun.sleep(0)
    expect(it.running()).toEqual([])
  })

  test('counts from what was said to be used, and is notified for it', () => {
    using it = world(10)
    it.metering.setUsed('a', 8.5)
    it.metering.setUsed('a', 1)
    it.metering.setUsed('a', 11)
    expect(it.quota().map((line) => line.split(' ')[0])).toEqual(['quota.threshold', 'quota.cap_reached'])
    expect(it.metering.isCapped('a')).toBe(true)
  })

  test('that turned while berth was down is a new one', async () => {
    using it = world(1)
    it.start('s')
    it.start('m')
    await it.clock.advance(0.5 * HOUR)
    expect(it.running()).toEqual([])
    it.crash(40 * DAY)
    it.start('s')
    expect(it.metering.budget('a')).toEqual({ month: '2030-02', used: 0, cap: 1 })
  })

  test('of one account is not that of another', async () => {
    using it = world(0.1)
    it.account('b', 10)
    it.server('other', 'b', 'small')
    it.start('s')
    it.start('other')
    await it.clock.advance(HOUR)
    it.metering.accrue('b')
    expect(it.running()).toEqual(['other'])
    expect(it.charged()).toEqual({ s: 360_000, m: 0, other: toUnits(1) })
  })
})
