import { closeSync, writeFileSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { loadPtyCalls } from '../../src/compute/sandboxd/pty.ts'
import { executable, type Instance, memoryOf, startInstance, temporaryFolder } from './instance.ts'
import { median, ms, print, quantile, times } from './measure.ts'

const KEYS = 1_000
const OPENED = 30
const SHELLS = 20

/** Bytes of the file that is printed: lines of a log, of different lengths. */
const FILE_BYTES = 200_000_000

/** The commands that make the file: of plain lines, and of coloured ones, which have to be drawn. */
const FILES = {
  plain: 'request %d took %d ms and was answered',
  coloured: '\\033[32mrequest %d\\033[m took %d ms',
}

/** How soon a terminal shows its prompt and echoes a key, and how fast it prints, with berth's memory. */
export async function benchTerminals(): Promise<void> {
  await using berth = await startInstance()
  // A small server's one processor would be the limit: the program and sandboxd share it.
  const { id } = await berth.call('POST', '/servers', { tier: 'large' })
  const prompts = await timesToPrompt(berth, id)
  const shells = await timesOfShell(berth, id)
  const keys = await echoes(berth, id)
  print(`Terminals (isolation ${berth.isolation})`, [
    {
      what: `POST to the prompt, attached, median of ${OPENED}`,
      measured: ms(median(prompts)),
      goal: '≤ 25 ms',
      met: median(prompts) <= 25,
    },
    {
      what: `berth shell to the prompt, median of ${SHELLS} (least ${ms(Math.min(...shells))})`,
      measured: ms(median(shells)),
      goal: '≤ 60 ms',
      met: median(shells) <= 60,
    },
    {
      what: `a key's echo, p99 of ${KEYS} (median ${ms(median(keys))})`,
      measured: ms(quantile(keys, 0.99)),
      goal: '≤ 5 ms',
      met: quantile(keys, 0.99) <= 5,
    },
    ...(await printed(berth, id, 'plain', 1)),
    ...(await printed(berth, id, 'plain', 0)),
    ...(await printed(berth, id, 'coloured', 1)),
  ])
}

async function timesToPrompt(berth: Instance, id: string): Promise<number[]> {
  const taken: number[] = []
  for (let n = 0; n < OPENED + 3; n += 1) {
    const begun = performance.now()
    const { terminal } = await berth.call('POST', `/servers/${id}/terminals`, {})
    const viewer = await attach(berth, id, terminal.id)
    await viewer.until((text) => text.includes('$ '))
    taken.push(performance.now() - begun)
    viewer.close()
    await berth.call('DELETE', `/servers/${id}/terminals/${terminal.id}`)
  }
  return taken.slice(3)
}

/** Milliseconds from the start of `berth shell` on a terminal of this machine to the prompt. */
async function timesOfShell(berth: Instance, id: string): Promise<number[]> {
  const taken: number[] = []
  for (let n = 0; n < SHELLS + 2; n += 1) {
    const { master, slave } = loadPtyCalls().open()
    const begun = performance.now()
    const shell = Bun.spawn([executable, 'shell', id], {
      stdio: [slave, slave, slave] as never,
      env: { ...process.env, BERTH_BASE_URL: berth.url, BERTH_API_KEY: berth.key },
    })
    closeSync(slave)
    let shown = ''
    try {
      for await (const chunk of Bun.file(master).stream()) {
        shown += new TextDecoder().decode(chunk)
        if (!shown.endsWith('$ ')) continue
        taken.push(performance.now() - begun)
        writeSync(master, 'exit\r')
        shown = ''
      }
    } catch {
      // The end of a terminal is an error (EIO).
    }
    await shell.exited
  }
  return taken.slice(2)
}

async function echoes(berth: Instance, id: string): Promise<number[]> {
  const { terminal } = await berth.call('POST', `/servers/${id}/terminals`, { command: 'cat' })
  const viewer = await attach(berth, id, terminal.id)
  const taken: number[] = []
  for (let n = 0; n < KEYS + 50; n += 1) {
    const before = viewer.bytes
    const begun = performance.now()
    viewer.type(n % 60 === 59 ? '\n' : 'x')
    await viewer.until(() => viewer.bytes > before)
    taken.push(performance.now() - begun)
    // As a person types, though faster: what a line prints has arrived when the next key is pressed.
    await Bun.sleep(3)
  }
  viewer.close()
  await berth.call('DELETE', `/servers/${id}/terminals/${terminal.id}`)
  return taken.slice(50)
}

/** Megabytes a second that a pseudo-terminal of this machine passes on to this process, without berth. */
async function bareSpeed(): Promise<number> {
  using folder = temporaryFolder()
  const file = join(folder.path, 'plain')
  writeFileSync(file, 'request 1 took 1 ms and was answered\n'.repeat(1_500_000))
  const { master, slave } = loadPtyCalls().open()
  const cat = Bun.spawn(['cat', file], { stdio: [slave, slave, slave] as never })
  closeSync(slave)
  const begun = performance.now()
  let bytes = 0
  try {
    for await (const chunk of Bun.file(master).stream()) bytes += chunk.length
  } catch {
    // The end of a terminal is an error (EIO).
  }
  await cat.exited
  return bytes / 1e3 / (performance.now() - begun)
}

/** Prints a file on a terminal, with one viewer that reads or none. */
async function printed(berth: Instance, id: string, kind: keyof typeof FILES, viewers: number) {
  const make = `seq 9000000 | awk '{printf "${FILES[kind]}\\n", $1, $1 % 977}' | head -c ${FILE_BYTES} > ${kind}`
  await berth.call('POST', `/servers/${id}/exec`, {
    command: `[ -e ${kind} ] || ${make}; cat ${kind} > /dev/null`,
  })
  // Right before, because the speed of a pseudo-terminal varies with the machine's other work.
  const bare = await bareSpeed()
  const before = memoryOf(berth.pid).resident
  const begun = performance.now()
  const command = `cat ${kind}; printf 'the end'; exec sleep 300`
  const { terminal } = await berth.call('POST', `/servers/${id}/terminals`, { command })
  let peak = before
  const watch = setInterval(() => {
    peak = Math.max(peak, memoryOf(berth.pid).resident)
  }, 100)
  const viewer = viewers > 0 ? await attach(berth, id, terminal.id) : null
  if (viewer === null) {
    const probe = `until [ "$(ps -o comm= -C sleep)" ]; do sleep 0.01; done`
    await berth.call('POST', `/servers/${id}/exec`, { command: probe })
  } else await viewer.until((text) => text.endsWith('the end'))
  const seconds = (performance.now() - begun) / 1_000
  clearInterval(watch)
  viewer?.close()
  await berth.call('DELETE', `/servers/${id}/terminals/${terminal.id}`)
  const speed = FILE_BYTES / 1e6 / seconds
  const grown = (peak - before) / 2 ** 20
  const who = viewers > 0 ? 'a viewer' : 'nobody attached'
  return [
    {
      what: `cat of ${FILE_BYTES / 1e6} MB, ${kind} lines, ${who}`,
      measured: `${speed.toFixed(0)} MB/s`,
      baseline: `a bare pseudo-terminal ${bare.toFixed(0)} MB/s; memory + ${grown.toFixed(0)} MiB`,
      ratio: times(speed / bare),
      ...(kind === 'plain' ? { goal: '≥ 50 MB/s', met: speed >= 50 } : {}),
    },
  ]
}

/** A viewer that keeps only the end of what it is sent. */
interface BenchViewer {
  readonly bytes: number
  type(text: string): void
  /** Waits until the end of what it was sent fits. */
  until(fits: (text: string) => boolean): Promise<void>
  close(): void
}

async function attach(berth: Instance, id: string, terminal: string): Promise<BenchViewer> {
  const url = `${berth.url.replace('http', 'ws')}/servers/${id}/terminals/${terminal}/attach`
  const socket = new WebSocket(url, { headers: { authorization: `Bearer ${berth.key}` } } as never)
  socket.binaryType = 'nodebuffer'
  const state = { bytes: 0, end: '', waiting: () => {} }
  socket.onmessage = ({ data }: MessageEvent<Buffer>) => {
    state.bytes += data.length
    state.end = (state.end + data.subarray(-200).toString()).slice(-200)
    state.waiting()
  }
  await new Promise((resolve, reject) => {
    socket.onopen = resolve
    socket.onclose = reject
  })
  return {
    get bytes() {
      return state.bytes
    },
    type: (text) => socket.send(new TextEncoder().encode(text)),
    until: (fits) =>
      new Promise((resolve) => {
        state.waiting = () => {
          if (!fits(state.end)) return
          state.waiting = () => {}
          resolve()
        }
        state.waiting()
      }),
    close: () => socket.close(),
  }
}
