import { OUTPUT_LIMIT } from '../exec/service.ts'
import { type ApiAnswer, type ApiRequest, type CallersApi, read } from './api.ts'
import { eventsOf, failed, isEventStream } from './events.ts'
import type { Progress } from './progress.ts'

type Stream = 'stdout' | 'stderr'

/** Runs a command and tells what it prints as it comes. The answer is the one that the command gives without that. */
export async function runTold(api: CallersApi, request: ApiRequest, progress: Progress): Promise<ApiAnswer> {
  const answer = await api.send({ ...request, stream: true })
  if (!isEventStream(answer)) return read(answer)
  const kept = { stdout: new Kept(), stderr: new Kept() }
  for await (const { event, data } of eventsOf(answer, request.signal)) {
    if (event === 'stdout' || event === 'stderr') {
      const bytes = Buffer.from(data.data, data.encoding === 'base64' ? 'base64' : 'utf8')
      kept[event satisfies Stream].add(bytes)
      progress.say(data.encoding === 'base64' ? bytes.toString('utf8') : data.data)
    } else if (event === 'exit') {
      const { stdout, stderr } = kept
      const truncated = data.truncated || stdout.isCut || stderr.isCut
      return { status: 200, body: { stdout: stdout.text(), stderr: stderr.text(), ...data, truncated } }
    } else if (event === 'error') {
      return failed({ event, data })
    }
  }
  throw new Error('The stream of a command broke off.')
}

/** The bytes of one stream that an answer holds. */
class Kept {
  readonly #chunks: Uint8Array[] = []
  #size = 0
  isCut = false

  add(bytes: Uint8Array): void {
    const room = OUTPUT_LIMIT - this.#size
    if (bytes.length > room) this.isCut = true
    const fitting = bytes.subarray(0, room)
    this.#size += fitting.length
    if (fitting.length > 0) this.#chunks.push(fitting)
  }

  text(): string {
    return new TextDecoder('utf-8', { ignoreBOM: true }).decode(Buffer.concat(this.#chunks))
  }
}
