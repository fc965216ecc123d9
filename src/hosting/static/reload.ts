import { eventStream } from '../../http/sse.ts'
import { machineNow } from '../../runtime/clock.ts'
import type { FileResponse } from '../sites/upstream.ts'

/** Path of the event stream that pages listen on. No file has it: names that begin with a dot are not served. */
export const RELOAD_PATH = '/.berth/reload'

/** Reloads the page when the version differs from the first one received, also after a restart of berth. */
const SCRIPT = `<script>(()=>{let first;new EventSource(${JSON.stringify(RELOAD_PATH)}).addEventListener("version",({data})=>{first??=data;if(data!==first)location.reload()})})()</script>`

/** Reloads the open pages of a site when its files have changed. */
export class LiveReload {
  readonly #started = machineNow()
  readonly #pages = new Set<() => void>()
  #changes = 0

  /** Reloads every open page, because the files have changed. */
  changed(): void {
    this.#changes += 1
    for (const notify of this.#pages) notify()
  }

  /** Number of pages that listen. */
  get pages(): number {
    return this.#pages.size
  }

  /** Returns the event stream for one page, which ends with the connection. */
  stream(): FileResponse {
    const { status, headers, body } = eventStream(async (send, gone) => {
      const notify = () => void send('version', `${this.#started}.${this.#changes}`)
      this.#pages.add(notify)
      notify()
      await new Promise<void>((resolve) => gone.addEventListener('abort', () => resolve(), { once: true }))
      this.#pages.delete(notify)
    })
    return { status, headers: Object.fromEntries(headers), body }
  }
}

/** Inserts the script before the page's `</body>`, or at its end if there is none. Changes nothing else. */
export function withReload(page: Uint8Array): Uint8Array<ArrayBuffer> {
  // Latin-1 preserves every byte, independent of the page's encoding.
  const text = Buffer.from(page).toString('latin1')
  const found = text.toLowerCase().lastIndexOf('</body')
  const at = found === -1 ? text.length : found
  return new Uint8Array(Buffer.from(text.slice(0, at) + SCRIPT + text.slice(at), 'latin1'))
}
