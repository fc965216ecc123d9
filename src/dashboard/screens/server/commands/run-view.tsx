import { Button } from '../../../components/button.tsx'
import { CopyButton } from '../../../components/copy.tsx'
import { OutputView, outputText } from '../../../components/output-view.tsx'
import { ExitState, State } from '../../../components/state.tsx'
import { span } from '../../../components/time.tsx'
import type { CommandRun, CommandState } from '../../../store/commands.ts'

/** A command with what it printed and how it ended. */
export function RunView({ run, onAgain }: { run: CommandRun; onAgain: (() => void) | undefined }) {
  const state = run.state.value
  const { end, failure, isRunning, ms } = state
  const hasOutput = run.output.shown.value.parts.length > 0
  return (
    <article class="run" aria-label={`Command ${run.command}`}>
      <header>
        <code>{run.command}</code>
        <span role="status">
          <Outcome of={state} />
          {ms !== null && <span class="quiet"> {span(ms)}</span>}
        </span>
        {hasOutput && <CopyButton text={() => outputText(run.output)} label="Copy the output" />}
        {!isRunning && onAgain && (
          <Button look="quiet" icon="restart" label={`Run ${run.command} again`} onClick={onAgain} />
        )}
      </header>
      {failure !== null && (
        <p class="failure" role="alert">
          {failure}
        </p>
      )}
      <OutputView
        label={`Output of ${run.command}`}
        output={run.output}
        more="A terminal or a file keeps more."
      />
      {end && !hasOutput && <p class="quiet">It printed nothing.</p>}
      {end?.truncated && <p class="quiet">berth cut the output at 10 MiB.</p>}
      {end?.refused?.map(({ destination, reason, remedy }) => (
        <p class="notice" key={destination}>
          <bdi>{destination}</bdi> was refused: {reason}. {remedy}
        </p>
      ))}
    </article>
  )
}

/** How a command ended, or that it runs. */
function Outcome({ of: { isRunning, end, failure } }: { of: CommandState }) {
  if (isRunning) return <State of="running" look="active" />
  if (failure !== null) return <State of="not run" look="bad" />
  if (end === null) return <State of="cancelled" look="resting" />
  return <ExitState {...end} />
}
