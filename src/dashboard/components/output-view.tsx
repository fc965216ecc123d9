import { useLayoutEffect, useRef } from 'preact/hooks'
import type { PrintedOutput } from '../store/printed-output.ts'
import { withoutEscapes } from './text.ts'

/** Pixels from its end within which output still counts as scrolled to it. */
const NEAR_END = 24

/** Properties of a command's output. */
interface OutputViewProps {
  /** Name for screen readers. */
  label: string
  output: PrintedOutput
  /** Says where the beginning is, if only the end is shown. */
  more: string
}

/** What a command has printed, which grows while it runs. Scrolled to its end, it stays there. */
export function OutputView({ label, output, more }: OutputViewProps) {
  const { parts, isCut } = output.shown.value
  const screen = useRef<HTMLElement>(null)
  const isAtEnd = useRef(true)
  // Before it is painted: else it would jump.
  useLayoutEffect(() => {
    if (screen.current && isAtEnd.current) screen.current.scrollTop = screen.current.scrollHeight
  }, [parts])
  if (parts.length === 0) return null
  return (
    <>
      {isCut && <p class="quiet">Only the end is shown. {more}</p>}
      <section
        class="output"
        ref={screen}
        // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls has to be reached by keyboard
        tabIndex={0}
        aria-label={label}
        onScroll={({ currentTarget: { scrollTop, scrollHeight, clientHeight } }) => {
          isAtEnd.current = scrollHeight - scrollTop - clientHeight < NEAR_END
        }}
      >
        <pre>
          {parts.map(({ stream, text }, at) => (
            <span key={at} class={stream}>
              {withoutEscapes(text)}
            </span>
          ))}
        </pre>
      </section>
    </>
  )
}

/** Returns the shown output of a command as a text, to be copied. */
export const outputText = ({ shown }: PrintedOutput): string =>
  shown
    .peek()
    .parts.map(({ text }) => withoutEscapes(text))
    .join('')
