/** Where the repository lies. */
export const root = new URL('../..', import.meta.url).pathname.replace(/\/$/, '')

/** How a program ended. */
export interface Ended {
  readonly succeeded: boolean
  /** What it printed on standard error. */
  readonly stderr: string
  readonly seconds: number
  /** Processor time of the program and of the processes that it waited for, in seconds. */
  readonly processorSeconds: number
}

/** Runs a program in the repository's root, with its output shown as it comes, to its end. */
export async function runProgram(command: string[], env: Record<string, string> = {}): Promise<Ended> {
  const started = performance.now()
  const child = Bun.spawn(command, {
    cwd: root,
    stdin: 'ignore',
    stdout: 'inherit',
    stderr: 'pipe',
    env: { ...process.env, ...env },
  })
  const decoder = new TextDecoder()
  let stderr = ''
  for await (const chunk of child.stderr) {
    process.stderr.write(chunk)
    stderr += decoder.decode(chunk, { stream: true })
  }
  const succeeded = (await child.exited) === 0
  return {
    succeeded,
    stderr,
    seconds: (performance.now() - started) / 1_000,
    processorSeconds: Number(child.resourceUsage()?.cpuTime.total ?? 0) / 1e6,
  }
}
