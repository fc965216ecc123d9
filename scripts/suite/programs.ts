/** Where the repository lies. */
export const root = new URL('../..', import.meta.url).pathname.replace(/\/$/, '')

/** How a program ended. */
export interface Ended {
  readonly succeeded: boolean
  /** What it printed on standard output; empty if that was shown. */
  readonly stdout: string
  /** What it printed on standard error. */
  readonly stderr: string
  readonly seconds: number
  /** Processor time of the program and of the processes that it waited for, in seconds. */
  readonly processorSeconds: number
}

/** What is done about a program that prints nothing on standard error for long. */
export interface Patience {
  readonly ms: number
  /** Called with the id of its process, and again if it has gone on and falls silent once more. */
  onSilence(pid: number): void
}

/**
 * Runs a program in the repository's root to its end.
 *
 * @param shown whether its output is shown as it comes
 */
export async function runProgram(
  command: string[],
  env: Record<string, string> = {},
  shown = true,
  patience?: Patience,
): Promise<Ended> {
  const started = performance.now()
  const child = Bun.spawn(command, {
    cwd: root,
    stdin: 'ignore',
    stdout: shown ? 'inherit' : 'pipe',
    stderr: 'pipe',
    env: { ...process.env, ...env },
  })
  const silence = patience && setTimeout(() => patience.onSilence(child.pid), patience.ms)
  const [stdout, stderr] = await Promise.all([
    child.stdout === undefined ? '' : child.stdout.text(),
    read(child.stderr, child.exited, shown, () => silence?.refresh()),
  ])
  clearTimeout(silence)
  const succeeded = (await child.exited) === 0
  return {
    succeeded,
    stdout,
    stderr,
    seconds: (performance.now() - started) / 1_000,
    processorSeconds: Number(child.resourceUsage()?.cpuTime.total ?? 0) / 1e6,
  }
}

/** How long what a program has started may keep its standard error open after its end, in milliseconds. */
const GRACE_MS = 10_000

async function read(
  stream: ReadableStream<Uint8Array>,
  ended: Promise<unknown>,
  shown: boolean,
  onChunk: () => void,
): Promise<string> {
  const decoder = new TextDecoder()
  const reader = stream.getReader()
  void ended.then(() => setTimeout(() => void reader.cancel(), GRACE_MS).unref())
  let text = ''
  for (;;) {
    const { value, done } = await reader.read()
    if (done) return text
    onChunk()
    if (shown) process.stderr.write(value)
    text += decoder.decode(value, { stream: true })
  }
}
