import { describe, expect, test } from 'bun:test'
import { SteerableClock } from '../../src/runtime/clock.ts'
import { MovedClock, PretendedMachine } from '../support/clock.ts'

const START = Date.UTC(2030, 0, 1)
const DAY = 86_400_000

describe('a clock that stands', () => {
  test('runs what falls due in order, each at its own moment, and waits for it', async () => {
    const clock = new MovedClock(START)
    const seen: [string, number][] = []
    const note = (name: string) => seen.push([name, clock.now() - START])
    clock.after(30, async () => {
      await Bun.sleep(2)
      note('third')
    })
    clock.after(10, () => {
      note('first')
      clock.after(15, () => void note('second'))
      clock.after(1_000, () => void note('beyond'))
    })
    clock.after(30, () => void note('fourth'))
    await clock.advance(100)
    expect(seen).toEqual([
      ['first', 10],
      ['second', 25],
      ['third', 30],
      ['fourth', 30],
    ])
    expect(clock.now()).toBe(START + 100)
    expect(clock.pending).toBe(1)
  })

  test('takes calls to move it one after the other', async () => {
    const clock = new MovedClock(START)
    const seen: number[] = []
    clock.after(10, async () => {
      await Bun.sleep(5)
      seen.push(clock.elapsed())
    })
    clock.after(20, () => void seen.push(clock.elapsed()))
    await Promise.all([clock.advance(10), clock.advance(10), clock.set(START + 50)])
    expect(seen).toEqual([10, 20])
    expect(clock.elapsed()).toBe(50)
  })

  test('set into the past moves the calendar alone and runs nothing', async () => {
    const clock = new MovedClock(START)
    let runs = 0
    let corrections = 0
    clock.onCorrection(() => void corrections++)
    clock.after(10, () => void runs++)
    clock.after(100, () => void runs++)
    await clock.advance(50)
    await clock.set(START - DAY)
    expect([clock.now(), clock.elapsed(), runs, corrections]).toEqual([START - DAY, 50, 1, 1])
    await clock.advance(50)
    expect([clock.now(), runs]).toEqual([START - DAY + 50, 2])
  })

  test('a call that fails holds up none of the others', async () => {
    const clock = new MovedClock(START)
    let ran = false
    clock.after(1, () => Promise.reject(new Error('it broke')))
    clock.after(2, () => {
      ran = true
    })
    await expect(clock.advance(5)).rejects.toThrow('it broke')
    expect([ran, clock.elapsed()]).toEqual([true, 5])
  })

  test('a timer taken back does not run, also by one that is due before', async () => {
    const clock = new MovedClock(START)
    let ran = false
    const later = clock.after(20, () => {
      ran = true
    })
    clock.after(10, () => later.cancel())
    await clock.advance(30)
    expect([ran, clock.pending]).toEqual([false, 0])
  })

  test('reset brings it back to where it stood at first', async () => {
    const clock = new MovedClock(START)
    await clock.advance(DAY)
    await clock.unfreeze()
    await clock.reset()
    expect([clock.now(), clock.frozen]).toEqual([START, true])
    expect(clock.elapsed()).toBeGreaterThanOrEqual(DAY)
  })
})

describe('a clock that follows the machine', () => {
  test('takes over a step of the calendar, in which no time passes', async () => {
    const machine = new PretendedMachine(START)
    const clock = new SteerableClock({ machine })
    let corrections = 0
    clock.onCorrection(() => void corrections++)
    machine.pass(1_000)
    expect([clock.now(), clock.elapsed()]).toEqual([START + 1_000, 1_000])
    machine.correct(8 * 3_600_000)
    expect([clock.now(), clock.elapsed()]).toEqual([START + 1_000 + 8 * 3_600_000, 1_000])
    machine.correct(-DAY)
    expect([clock.now(), clock.elapsed()]).toEqual([START + 1_000 + 8 * 3_600_000 - DAY, 1_000])
    await Promise.resolve()
    expect(corrections).toBe(2)
    expect(clock.offset).toBe(0)
  })

  test('does not follow what the machine slews by', () => {
    const machine = new PretendedMachine(START)
    const clock = new SteerableClock({ machine })
    machine.correct(1_500)
    expect(clock.now()).toBe(START)
  })

  test('stands, is moved, goes on from there, and comes back', async () => {
    const machine = new PretendedMachine(START)
    const clock = new SteerableClock({ machine })
    await clock.freeze()
    machine.pass(5_000)
    expect([clock.now(), clock.offset]).toEqual([START, -5_000])
    await clock.advance(60_000)
    await clock.unfreeze()
    machine.pass(1)
    expect([clock.now(), clock.elapsed(), clock.offset]).toEqual([START + 60_001, 60_001, 55_000])
    machine.correct(DAY)
    expect(clock.now()).toBe(START + 60_001 + DAY)
    await clock.reset()
    expect([clock.now(), clock.elapsed(), clock.offset]).toEqual([START + 5_001 + DAY, 60_001, 0])
  })

  test('elapsed never goes back, over fractions of milliseconds and every kind of move', async () => {
    const machine = new PretendedMachine(START)
    const clock = new SteerableClock({ machine })
    let last = 0
    for (let round = 0; round < 200; round++) {
      machine.pass(0.37)
      if (round % 7 === 0) await clock.freeze()
      if (round % 7 === 3) await clock.unfreeze()
      if (round % 11 === 0) machine.correct(-5_000)
      if (round % 13 === 0) await clock.set(clock.now() - 3_000)
      const elapsed = clock.elapsed()
      expect(elapsed).toBeGreaterThanOrEqual(last)
      expect(Number.isInteger(elapsed)).toBe(true)
      last = elapsed
    }
  })

  test('fires by itself, not early, in order', async () => {
    const clock = new SteerableClock()
    const seen: string[] = []
    const began = performance.now()
    const { promise, resolve } = Promise.withResolvers<void>()
    clock.after(30, () => {
      seen.push('later')
      resolve()
    })
    clock.after(10, () => void seen.push('sooner'))
    clock.after(20, () => void seen.push('never')).cancel()
    await promise
    expect(performance.now() - began).toBeGreaterThanOrEqual(30)
    expect(seen).toEqual(['sooner', 'later'])
  })

  test('a delay of years neither fires at once nor keeps anything from firing', async () => {
    const clock = new SteerableClock()
    let fired = false
    clock.after(3 * 365 * DAY, () => {
      fired = true
    })
    const { promise, resolve } = Promise.withResolvers<void>()
    clock.after(5, resolve)
    await promise
    expect(fired).toBe(false)
    await clock.advance(3 * 365 * DAY)
    expect(fired).toBe(true)
  })

  test('a timer of the time before a move is due after it, once', async () => {
    const clock = new SteerableClock()
    let runs = 0
    const { promise, resolve } = Promise.withResolvers<void>()
    clock.after(3_600_000, () => void runs++)
    clock.after(3_600_020, () => {
      runs++
      resolve()
    })
    await clock.advance(3_600_000)
    expect(runs).toBe(1)
    await promise
    expect(runs).toBe(2)
  })

  test('is ahead of the machine by exactly what it was moved, however often and long', async () => {
    for (let round = 0; round < 40; round += 1) {
      const clock = new SteerableClock()
      expect(clock.offset).toBe(0)
      clock.after(1_000, () => Bun.sleep(round % 5))
      await Bun.sleep(round % 3)
      const before = clock.elapsed()
      await clock.advance(3_600_000)
      expect(clock.offset).toBe(3_600_000)
      expect(clock.elapsed()).toBeGreaterThanOrEqual(before + 3_600_000)
      await clock.advance(1)
      expect(clock.offset).toBe(3_600_001)
      const { state } = clock
      await clock.reset()
      expect(clock.offset).toBe(0)
      await clock.begin(state)
      expect(clock.offset).toBe(3_600_001)
      await clock.begin()
      expect(clock.offset).toBe(0)
    }
  })

  test('keeps no process alive', () => {
    const script = `import { SteerableClock } from '${import.meta.dir}/../../src/runtime/clock.ts'
      new SteerableClock().after(60_000, () => {})`
    const { exitCode } = Bun.spawnSync([process.execPath, '-e', script], { timeout: 10_000 })
    expect(exitCode).toBe(0)
  })
})
