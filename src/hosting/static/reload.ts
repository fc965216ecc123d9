import { eventStream } from '../../http/sse.ts'
import { machineNow } from '../../runtime/clock.ts'
import type { FileResponse } from '../sites/upstream.ts'

/** Where pages of a site listen for changes. No file of a site is served under a name that begins with a dot. */
export const RELOAD_PATH = '/.berth/reload'

/** What a page does: it reloads when it is told of another version than at first, also after berth was away. */
const SCRIPT = `<script>(()=>{let first;new EventSource(${JSON.stringify(RELOAD_PATH)}).addEventListener("version",({data})=>{first??=data;if(data!==first)location.reload()})})()</script>`

/** Reloads the open pages of a site when its files have changed. */
export class LiveReload {
  readonly #started = machineNow()
  readonly #pages = new Set<() => void>()
  #changes = 0

  /** The files have changed: every open page reloads. */
  changed(): void {
    this.#changes += 1
    for (const tell of this.#pages) tell()
  }

  /** How many pages listen. */
  get pages(): number {
    return this.#pages.size
  }

  /** The stream that a page listens to; it ends when the page goes away. */
  stream(): FileResponse {
    const { status, headers, body } = eventStream(async (send, gone) => {
      const tell = () => void send('version', `${this.#started}.${this.#changes}`)
      this.#pages.add(tell)
      tell()
      await new Promise<void>((resolve) => gone.addEventListener('abort', () => resolve(), { once: true }))
      this.#pages.delete(tell)
    })
    return { status, headers: Object.fromEntries(headers), body }
  }
}

/** A page with the script before its `</body>`, or at its end where that is left out. Nothing else changes. */
export function withReload(page: Uint8Array): Uint8Array<ArrayBuffer> {
  // Latin-1 keeps every byte as it is, whatever the page is written in.
  const text = Buffer.from(page).toString('latin1')
  const found = text.toLowerCase().lastIndexOf('</body')
  const at = found === -1 ? text.length : found
  return new Uint8Array(Buffer.from(text.slice(0, at) + SCRIPT + text.slice(at), 'latin1'))
}
