import { describe, expect, test } from 'bun:test'
import {
  appendFileSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { AppLog, LogEvent } from '../../../src/hosting/app-runtime/log/log.ts'
import { AppFailure } from '../../../src/hosting/app-runtime/plan.ts'
import { runStep } from '../../../src/hosting/app-runtime/step.ts'
import { SandboxMachine } from '../../../src/hosting/detection/sandbox-machine.ts'
import { cleanLine, LONGEST_LINE } from '../../../src/runtime/lines.ts'
import { Masks } from '../../../src/runtime/masks.ts'
import { until } from '../../compute/bench.ts'
import { MovedClock } from '../../support/clock.ts'
import { isThere, openLog, World } from './world.ts'

/** A folder for a log, removed in the end. */
class Place implements AsyncDisposable {
  readonly folder = join(mkdtempSync(join(tmpdir(), 'berth-log-')), 'log')
  readonly clock = new MovedClock()
  readonly masks = new Masks()
  #logs: AppLog[] = []

  async open(): Promise<AppLog> {
    const log = await openLog(this.folder, this.clock, this.masks)
    this.#logs.push(log)
    return log
  }

  file(name: string): string {
    return join(this.folder, name)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const log of this.#logs) await log.close()
    rmSync(join(this.folder, '..'), { recursive: true, force: true })
  }
}

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text)

const textsOf = async (log: AppLog, n = 1000): Promise<string[]> =>
  (await log.tail(n)).map(({ text }) => text)

describe('a log', () => {
  test('keeps what comes from where, when, line by line', async () => {
    await using place = await new Place()
    const log = await place.open()
    const output = log.output('app')
    output.write('stdout', bytes('one\ntw'))
    await place.clock.advance(1500)
    output.write('stderr', bytes('oops\n'))
    output.write('stdout', bytes('o\n'))
    log.append('berth', 'said')
    expect(await log.tail(10)).toEqual([
      { seq: 1, at: '2030-01-01T00:00:00.000Z', source: 'app', stream: 'stdout', text: 'one' },
      { seq: 2, at: '2030-01-01T00:00:01.500Z', source: 'app', stream: 'stderr', text: 'oops' },
      { seq: 3, at: '2030-01-01T00:00:01.500Z', source: 'app', stream: 'stdout', text: 'two' },
      { seq: 4, at: '2030-01-01T00:00:01.500Z', source: 'berth', text: 'said' },
    ])
    expect(await textsOf(log, 2)).toEqual(['two', 'said'])
    expect(await log.tail(0)).toEqual([])
  })

  test('is for its owner alone', async () => {
    await using place = new Place()
    const log = await place.open()
    log.append('berth', 'x')
    await log.flush()
    expect(statSync(place.folder).mode & 0o777).toBe(0o700)
    expect(statSync(place.file('app.jsonl')).mode & 0o777).toBe(0o600)
  })

  test('of before is read on, numbers too, and a line that a crash tore is passed over', async () => {
    await using place = new Place()
    const first = await place.open()
    first.append('berth', 'one\ntwo')
    await first.flush()
    appendFileSync(place.file('app.jsonl'), '{"seq":3,"at":"2030-01-01T00:00:00.000Z","sou')
    const second = await place.open()
    second.append('berth', 'three')
    expect(await textsOf(second)).toEqual(['one', 'two', 'three'])
    expect((await second.tail(1))[0]?.seq).toBe(3)
  })

  test('survives kill -9 but for its last moments', async () => {
    await using place = new Place()
    const program = `
      import { openLog } from '${join(import.meta.dir, 'world.ts')}'
      const log = await openLog(${JSON.stringify(place.folder)})
      for (let n = 0; ; n += 1) { log.append('berth', 'line ' + n); if (n % 100 === 0) await Bun.sleep(1) }`
    const writer = Bun.spawn([process.execPath, '-e', program], { stdio: ['ignore', 'ignore', 'inherit'] })
    await until(
      'some lines',
      () => isThere(place.file('app.jsonl')) && statSync(place.file('app.jsonl')).size > 200_000,
    )
    writer.kill('SIGKILL')
    await writer.exited
    const log = await place.open()
    const found = await log.tail(10_000)
    expect(found.length).toBeGreaterThan(1000)
    expect(found.map(({ text }) => text)).toEqual(found.map(({ seq }) => `line ${seq - 1}`))
    log.append('berth', 'after')
    expect((await textsOf(log, 1))[0]).toBe('after')
  })

  test('takes no more than its share of the disk, and keeps the newest', async () => {
    await using place = new Place()
    const log = await place.open()
    const line = 'x'.repeat(4000)
    for (let n = 0; n < 4000; n += 1) {
      log.append('berth', `${n} ${line}`)
      if (n % 50 === 0) await log.flush()
    }
    await log.flush()
    const sizes = readdirSync(place.folder).map((name) => statSync(place.file(name)).size)
    expect(sizes.length).toBe(2)
    for (const size of sizes) expect(size).toBeLessThanOrEqual(4 * 2 ** 20)
    const found = await textsOf(log, 1500)
    expect(found.map((text) => Number.parseInt(text, 10))).toEqual(
      Array.from({ length: 1500 }, (_, n) => 2500 + n),
    )
  })

  test('is read for one worker, however much the others have printed since', async () => {
    await using place = await new Place()
    const log = await place.open()
    log.output('worker', undefined, undefined, 'clock').write('stdout', bytes('tick\n'))
    const app = log.output('app')
    for (let n = 0; n < 30; n += 1) app.write('stdout', bytes(`${'.\n'.repeat(400)}`))
    log.output('worker', undefined, undefined, 'mail').write('stdout', bytes('sent\n'))
    const texts = async (worker: string, since?: number) =>
      (await log.select({ tail: 200, worker, since: since ?? null })).map(({ text }) => text)
    expect(await texts('clock')).toEqual(['tick'])
    expect(await texts('mail', 0)).toEqual(['sent'])
    expect(await texts('none')).toEqual([])
    const seen: string[] = []
    const end = new AbortController()
    const following = log.subscribe(end.signal, { tail: 0, worker: 'clock' }, (event) => {
      if (event.kind === 'entry') seen.push(event.entry.text)
      end.abort()
    })
    log.output('app').write('stdout', bytes('more\n'))
    log.output('worker', undefined, undefined, 'clock').write('stdout', bytes('tock\n'))
    await following
    expect(seen).toEqual(['tock'])
  })

  test('of a bring-up lies apart, and the last five are kept', async () => {
    await using place = new Place()
    const log = await place.open()
    for (let n = 1; n <= 7; n += 1) {
      log.beginRun(`irun_${n}`)
      log.append('install', `install ${n}`)
      log.output('app').write('stdout', bytes(`app ${n}\n`))
      await log.flush()
    }
    log.endRun()
    log.append('berth', 'after')
    expect((await log.tail(10, 'irun_7')).map(({ text }) => text)).toEqual(['install 7'])
    expect(await log.tail(10, 'irun_1')).toEqual([])
    const all = await textsOf(await place.open())
    expect(all.filter((text) => text.startsWith('install'))).toEqual(
      [3, 4, 5, 6, 7].map((n) => `install ${n}`),
    )
    expect(all.at(-1)).toBe('after')
    expect(readdirSync(place.folder).filter((name) => name.startsWith('run-')).length).toBe(5)
  })

  test('that is removed leaves nothing, and takes nothing more', async () => {
    await using place = new Place()
    const log = await place.open()
    log.append('berth', 'x')
    await log.remove()
    log.append('berth', 'y')
    await log.flush()
    expect(isThere(place.folder)).toBe(false)
  })

  test('whose disk refuses goes on without', async () => {
    await using place = new Place()
    const { stderr } = process
    const write = stderr.write.bind(stderr)
    let said = ''
    stderr.write = ((text: string) => {
      said += text
      return true
    }) as typeof stderr.write
    try {
      const log = await place.open()
      writeFileSync(place.folder, 'a file where the folder should be')
      log.append('berth', 'lost')
      await log.flush()
      log.append('berth', 'lost too')
      await log.flush()
    } finally {
      stderr.write = write
    }
    // Logs of earlier tests may have something to say, too.
    const warnings = said.split('\n').filter((line) => line.includes(place.folder))
    expect(warnings.filter((line) => line.includes('log cannot be written')).length).toBe(1)
  })
})

describe('lines', () => {
  test.each([
    ['plain', 'plain'],
    ['\u001b[31mred\u001b[0m and \u001b]0;title\u0007rest', 'red and rest'],
    ['10 %\r50 %\r100 %', '100 %'],
    ['windows\r', 'windows'],
    ['bell\u0007 null\u0000 tab\tkept', 'bell null tab\tkept'],
    ['grüße 🚀 日本', 'grüße 🚀 日本'],
  ])('%j are logged as %j', (line, clean) => {
    expect(cleanLine(line)).toBe(clean)
  })

  test('of characters in pieces are whole, and bytes that are not UTF-8 are replaced', async () => {
    await using place = new Place()
    const log = await place.open()
    const output = log.output('app')
    for (const byte of bytes('grüße 🚀\n')) output.write('stdout', new Uint8Array([byte]))
    output.write('stdout', new Uint8Array([0x61, 0xff, 0xfe, 0x62, 0x0a]))
    expect(await textsOf(log)).toEqual(['grüße 🚀', 'a\ufffd\ufffdb'])
  })

  test('that are too long are cut', async () => {
    await using place = new Place()
    const log = await place.open()
    const output = log.output('app')
    for (let n = 0; n < 100; n += 1) output.write('stdout', bytes('y'.repeat(1000)))
    output.write('stdout', bytes('\nnext\n'))
    const [cut, next] = await textsOf(log)
    expect(cut).toBe(`${'y'.repeat(LONGEST_LINE)} … (the rest of the line is left out)`)
    expect(next).toBe('next')
  })

  test('without an end show after a moment, and at the end of the process', async () => {
    await using place = new Place()
    const log = await place.open()
    const output = log.output('app')
    output.write('stdout', bytes('continue? '))
    await until('the question', async () => (await textsOf(log)).length === 1)
    output.write('stdout', bytes('\nyes'))
    output.end()
    expect(await textsOf(log)).toEqual(['continue? ', 'yes'])
  })

  test('that come too fast are left out, but the last', async () => {
    await using place = new Place()
    const log = await place.open()
    const output = log.output('app')
    const all = Array.from({ length: 20_000 }, (_, n) => `${n}\n`).join('')
    await output.write('stdout', bytes(all))
    output.end()
    const found = await textsOf(log, 10_000)
    expect(found.length).toBeLessThan(6000)
    expect(found).toContain('14950 lines are left out here: more came than a log can take.')
    expect(found.slice(-50)).toEqual(Array.from({ length: 50 }, (_, n) => String(19_950 + n)))
    expect(output.last.at(-1)).toBe('19999')
  })

  test('that come too fast are left out, but the last before a pause', async () => {
    await using place = new Place()
    const log = await place.open()
    const output = log.output('app')
    await output.write('stdout', bytes('a line\n'.repeat(20_000)))
    await output.write('stdout', bytes('the last\n'))
    await until('the last line', async () => (await textsOf(log)).at(-1) === 'the last')
    output.write('stdout', bytes('later\n'))
    output.end()
    const found = await textsOf(log, 10_000)
    expect(found.filter((text) => text === 'the last')).toHaveLength(1)
    expect(found.filter((text) => text.includes('are left out here'))).toHaveLength(1)
  })

  test('hide secrets, in pieces, with silence in between, and taken apart by colours', async () => {
    await using place = new Place()
    place.masks.add(['hunter-two'])
    const log = await place.open()
    const output = log.output('app')
    output.write('stdout', bytes('a hunt'))
    await until('silence', async () => (await textsOf(log)).length === 1)
    output.write('stdout', bytes('er-two b\nhun\u001b[1mter\u001b[0m-two c\n'))
    log.append('berth', 'Runs: curl -u bob:hunter-two')
    const found = await textsOf(log)
    expect(found).toEqual(['a ***', ' b', '*** c', 'Runs: curl -u bob:***'])
    expect(readFileSync(place.file('app.jsonl'), 'utf8')).not.toContain('er-two')
  })
})

describe('a reader that follows', () => {
  /** Follows a log and collects what comes. */
  function follow(log: AppLog, n: number, gate?: Promise<void>) {
    const stop = new AbortController()
    const seen: string[] = []
    const done = log.subscribe(stop.signal, { tail: n }, async (event: LogEvent) => {
      seen.push(event.kind === 'entry' ? event.entry.text : `-${event.entries}`)
      await gate
    })
    return { seen, done, stop: () => stop.abort() }
  }

  test('gets the last lines and then each new one, none twice', async () => {
    await using place = new Place()
    const log = await place.open()
    log.append('berth', 'one\ntwo\nthree')
    const reader = follow(log, 2)
    log.append('berth', 'four')
    await until('four', () => reader.seen.includes('four'))
    log.append('berth', 'five')
    await until('five', () => reader.seen.includes('five'))
    reader.stop()
    await reader.done
    expect(reader.seen.slice(-3)).toEqual(['three', 'four', 'five'])
    expect(new Set(reader.seen).size).toBe(reader.seen.length)
  })

  test('and is slow holds nobody up, and receives a count of what it missed', async () => {
    await using place = new Place()
    const log = await place.open()
    const gate = Promise.withResolvers<void>()
    log.append('berth', 'first')
    const reader = follow(log, 1, gate.promise)
    await until('the first', () => reader.seen.length === 1)
    for (let n = 0; n < 5000; n += 1) log.append('berth', String(n))
    await log.flush()
    gate.resolve()
    await until('the last', () => reader.seen.at(-1) === '4999')
    expect(reader.seen.slice(0, 3)).toEqual(['first', '-4000', '4000'])
    expect(reader.seen.length).toBe(1002)
    reader.stop()
    await reader.done
  })

  test('ends with the log', async () => {
    await using place = new Place()
    const log = await place.open()
    const reader = follow(log, 1)
    await log.close()
    await reader.done
  })
})

/** What a step belongs to. */
const OWNER = { kind: 'project', id: 'prj_a' } as const

describe('a step', () => {
  test('logs what it prints, and fails with the end of it', async () => {
    await using world = await World.open()
    const log = await world.log()
    world.masks.add(['top-secret'])
    const step = {
      owner: OWNER,
      sandbox: world.sandbox,
      workspace: world.workspace,
      cwd: '',
      env: { KEY: 'top-secret' },
      log,
      source: 'install' as const,
    }
    await runStep({ ...step, command: 'echo "got $KEY"' })
    const error = await runStep({ ...step, command: 'echo bad >&2; exit 9' }).catch((error) => error)
    expect(error).toBeInstanceOf(AppFailure)
    expect(error.summary).toBe('The install command failed with exit code 9: echo bad >&2; exit 9')
    expect(error.log).toEqual(['bad'])
    expect(await textsOf(log)).toEqual([
      'Runs: echo "got $KEY"',
      'got ***',
      'Runs: echo bad >&2; exit 9',
      'bad',
    ])
  })

  test('ends when it is called off, or takes too long', async () => {
    await using world = await World.open()
    const log = await world.log()
    const step = {
      owner: OWNER,
      sandbox: world.sandbox,
      workspace: world.workspace,
      cwd: '',
      env: {},
      log,
      source: 'build' as const,
      command: 'echo up; sleep 300',
    }
    const stop = new AbortController()
    const running = runStep({ ...step, signal: stop.signal })
    running.catch(() => {})
    await until('it to run', async () => (await textsOf(log)).includes('up'))
    stop.abort(new Error('called off'))
    expect(running).rejects.toThrow('called off')
    await running.catch(() => {})
    expect(runStep({ ...step, timeoutMs: 300 })).rejects.toThrow('took longer than')
    await until('its end', async () => (await world.bench.commands()).length === 0)
  })
})

test('the tools of a sandbox are asked for once', async () => {
  await using world = await World.open()
  const tools = new SandboxMachine(world.sandbox)
  expect(
    await Promise.all(['sh', 'no-such-tool', 'cargo-nothing; echo x'].map((name) => tools.has(name))),
  ).toEqual([true, false, false])
  const before = await tools.has('npm')
  await world.sandbox.stop()
  expect(await tools.has('npm')).toBe(before)
})
