import { loadConfig } from '../../config/load.ts'
import type { ReadyInfo } from '../../instance/start.ts'
import { selfCommand } from '../../runtime/self.ts'
import { shellQuote } from '../../runtime/shell-quote.ts'
import { printReady } from '../banner.ts'
import { BACKGROUND } from '../command-line.ts'
import { CommandError } from '../errors.ts'
import { findDataDirectory } from '../find-instance.ts'
import { untilInterrupted } from '../interrupt.ts'
import type { ProcessContext } from '../process-context.ts'
import type { BackgroundReady } from './background.ts'
import type { StartedBy } from './registry.ts'

/**
 * Starts the service in the background and prints the same as `serve` when it is ready. Resolves to the exit code.
 *
 * @param flags options on the command line, by name
 * @throws UsageError, StartupError for an invalid configuration
 */
export async function detach(
  flags: Record<string, unknown>,
  context: ProcessContext,
  startedBy: StartedBy = 'serve --detach',
): Promise<number> {
  const { env, cwd, stderr } = context
  const { json } = loadConfig({ flags, env, cwd })
  return untilInterrupted(async (interrupted) => {
    const child = Bun.spawn([...selfCommand().argv, BACKGROUND, startedBy, ...toArgs(flags)], {
      cwd,
      stdio: ['ignore', 'pipe', 'pipe'],
      // Detached from this terminal's signals and from its end.
      detached: true,
    })
    interrupted.addEventListener('abort', () => child.kill('SIGTERM'))
    const stderrCopied = copyStream(child.stderr, (text) => stderr.write(text))
    const line = await firstLine(child.stdout)
    if (line === null) {
      // The reason is on stderr.
      await stderrCopied
      const code = await child.exited
      interrupted.throwIfAborted()
      if (child.signalCode !== null)
        throw new CommandError(`The instance in the background was ended by ${child.signalCode}.`)
      return code === 0 ? 1 : code
    }
    // Ends when the instance redirects its output to the log.
    await stderrCopied
    child.unref()
    const { ready, log, network } = JSON.parse(line) as BackgroundReady
    if (startedBy === 'up')
      await stderr.write(`berth ${ready.version} runs at ${ready.base_url}, until "berth down".\n`)
    else
      await printReady(json, ready, context, {
        stop: `Stop with "${stopCommand(ready, context)}".`,
        log,
        network,
      })
    return 0
  })
}

/** Converts options to command-line arguments. */
function toArgs(flags: Record<string, unknown>): string[] {
  return Object.entries(flags).flatMap(([name, value]) => {
    if (typeof value === 'boolean') return [value ? `--${name}` : `--no-${name}`]
    return (Array.isArray(value) ? value : [value]).map((one) => `--${name}=${one}`)
  })
}

/** Returns the command that stops the instance. Below the parent of its data directory it needs no `--data`. */
function stopCommand({ data_dir }: ReadyInfo, { env, cwd }: ProcessContext): string {
  const found = findDataDirectory(undefined, env, cwd) === data_dir
  return found ? 'berth stop' : `berth stop --data ${shellQuote([data_dir])}`
}

/** Copies a stream to its end. */
async function copyStream(
  stream: ReadableStream<Uint8Array>,
  write: (text: Uint8Array) => Promise<void>,
): Promise<void> {
  for await (const chunk of stream) await write(chunk)
}

/** Returns the first line, or null if the stream ends before the line does. */
async function firstLine(stream: ReadableStream<Uint8Array>): Promise<string | null> {
  const decoder = new TextDecoder()
  let text = ''
  for await (const chunk of stream) {
    text += decoder.decode(chunk, { stream: true })
    const end = text.indexOf('\n')
    if (end !== -1) return text.slice(0, end)
  }
  return null
}
