import { useLayoutEffect, useRef } from 'preact/hooks'
import { Button } from '../../../components/button.tsx'
import { CopyButton } from '../../../components/copy.tsx'
import { plainText } from '../../../components/plain-text.ts'
import { State } from '../../../components/state.tsx'
import { span } from '../../../components/time.tsx'
import type { CommandRun, CommandState } from '../../../store/commands.ts'

/** A command with what it printed and how it ended. */
export function RunView({ run, onAgain }: { run: CommandRun; onAgain: (() => void) | undefined }) {
  const state = run.state.value
  const { output, isCut, end, failure, isRunning, ms } = state
  const screen = useRef<HTMLElement>(null)
  const isAtEnd = useRef(true)
  // Before it is painted: else it would jump.
  useLayoutEffect(() => {
    if (screen.current && isAtEnd.current) screen.current.scrollTop = screen.current.scrollHeight
  }, [output])
  const [word, look] = outcomeOf(state)
  return (
    <article class="run" aria-label={`Command ${run.command}`}>
      <header>
        <code>{run.command}</code>
        <span role="status">
          <State of={word} look={look} />
          {ms !== null && <span class="quiet"> {span(ms)}</span>}
        </span>
        {output.length > 0 && (
          <CopyButton
            text={() => output.map(({ text }) => plainText(text)).join('')}
            label="Copy the output"
          />
        )}
        {!isRunning && onAgain && (
          <Button look="quiet" icon="restart" label={`Run ${run.command} again`} onClick={onAgain} />
        )}
      </header>
      {failure !== null && (
        <p class="failure" role="alert">
          {failure}
        </p>
      )}
      {isCut && <p class="quiet">Only the end is shown. A terminal or a file keeps more.</p>}
      {output.length > 0 && (
        <section
          class="output"
          ref={screen}
          // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls has to be reached by keyboard
          tabIndex={0}
          aria-label={`Output of ${run.command}`}
          onScroll={({ currentTarget: { scrollTop, scrollHeight, clientHeight } }) => {
            isAtEnd.current = scrollHeight - scrollTop - clientHeight < NEAR_END
          }}
        >
          <pre>
            {output.map(({ stream, text }, at) => (
              <span key={at} class={stream}>
                {plainText(text)}
              </span>
            ))}
          </pre>
        </section>
      )}
      {end && output.length === 0 && <p class="quiet">It printed nothing.</p>}
      {end?.truncated && <p class="quiet">berth cut the output at 10 MiB.</p>}
      {end?.refused?.map(({ destination, reason, remedy }) => (
        <p class="notice" key={destination}>
          <bdi>{destination}</bdi> was refused: {reason}. {remedy}
        </p>
      ))}
    </article>
  )
}

/** Pixels from its end within which output still counts as scrolled to it. */
const NEAR_END = 24

/** Returns how a command ended, in words, and the look of that. */
function outcomeOf({
  isRunning,
  end,
  failure,
}: CommandState): [string, 'active' | 'good' | 'bad' | 'resting' | 'waiting'] {
  if (isRunning) return ['running', 'active']
  if (failure !== null) return ['not run', 'bad']
  if (end === null) return ['cancelled', 'resting']
  if (end.timedOut) return ['timed out', 'waiting']
  return [`exit ${end.exitCode}`, end.exitCode === 0 ? 'good' : 'bad']
}
