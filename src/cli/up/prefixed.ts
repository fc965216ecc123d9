import { paint, type Style } from '../output.ts'
import type { OutputStream } from '../process-context.ts'

/** Colours by which a person tells apart whose line it is. */
const STYLES: readonly Style[] = ['cyan', 'yellow', 'green', 'red']

/**
 * Returns a stream that writes whole lines with a name before them, so that several can write to the same output.
 *
 * @param index of the name among those that are shown, for its colour
 */
export function prefixed(out: OutputStream, name: string, width: number, index: number): OutputStream {
  const style = STYLES[index % STYLES.length] ?? 'cyan'
  const prefix = `${paint(out, style, `${name.padEnd(width)} |`)} `
  const decoder = new TextDecoder()
  let rest = ''
  return {
    write(data) {
      const text = rest + (typeof data === 'string' ? data : decoder.decode(data, { stream: true }))
      const end = text.lastIndexOf('\n') + 1
      rest = text.slice(end)
      if (end === 0) return Promise.resolve()
      return out.write(text.slice(0, end).replaceAll(/^(?=.|\n)/gm, prefix))
    },
    get isTTY() {
      return out.isTTY
    },
    get columns() {
      return out.columns === undefined ? undefined : out.columns - width - 3
    },
    get hasColors() {
      return out.hasColors
    },
  }
}
