import { useEffect, useRef, useState } from 'preact/hooks'
import { runInBackground } from '../../components/begin.ts'
import { Button } from '../../components/button.tsx'
import { CopyButton } from '../../components/copy.tsx'
import { CommandLines, shellQuoted } from '../../components/http.tsx'
import { OutputView, outputText } from '../../components/output-view.tsx'
import { ExitState, State } from '../../components/state.tsx'
import { span } from '../../components/time.tsx'
import { useDashboard } from '../../dashboard.ts'
import type { CommandRun, CommandState } from '../../store/commands.ts'
import type { Server } from '../../store/store.ts'

/** A line that runs commands on a server, and below it what they printed, the newest first. */
export function CommandsTab({ server }: { server: Server }) {
  const { commands, shortcuts } = useDashboard()
  const input = useRef<HTMLInputElement>(null)
  const runs = commands.of(server.id).value
  const running = runs.find(({ state }) => state.value.isRunning)
  useEffect(
    () => shortcuts.add({ keys: 'i', label: 'Type a command', run: () => input.current?.focus() }),
    [shortcuts],
  )
  return (
    <div class="commands">
      <Line
        server={server}
        input={input}
        isRunning={running !== undefined}
        onCancel={() => running?.cancel()}
      />
      <ol class="runs" aria-label="Commands, the newest first">
        {runs.map((run) => (
          <li key={run.id}>
            <RunView run={run} onAgain={running ? undefined : () => commands.run(server.id, run.command)} />
          </li>
        ))}
      </ol>
    </div>
  )
}

/** Properties of the line. */
interface LineProps {
  server: Server
  input: { current: HTMLInputElement | null }
  isRunning: boolean
  onCancel: () => void
}

/** The line: Enter runs it, the arrows go through earlier ones, Escape cancels what runs. */
function Line({ server, input, isRunning, onCancel }: LineProps) {
  const dashboard = useDashboard()
  const { commands, notices } = dashboard
  const hasEnded = commands.of(server.id).value.some(({ state }) => !state.value.isRunning)
  const [line, setLine] = useState('')
  /** The place among earlier lines, the newest being 0; -1 for the line that is typed, which is kept. */
  const place = useRef({ at: -1, typed: '' })
  useEffect(() => input.current?.focus(), [])
  const recall = (step: number): void => {
    const lines = commands.lines(server.id)
    const { at, typed } = place.current
    const next = Math.max(-1, Math.min(lines.length - 1, at + step))
    place.current = { at: next, typed: at === -1 ? line : typed }
    setLine(next === -1 ? place.current.typed : (lines[next] ?? ''))
  }
  const run = (): void => {
    if (isRunning || line.trim() === '') return
    void notices.attempt(async () => {
      commands.run(server.id, line)
      place.current = { at: -1, typed: '' }
      setLine('')
    })
  }
  const shown = line || 'ls -la'
  const body = { command: shown }
  return (
    <form
      class="command-line"
      onSubmit={(event) => {
        event.preventDefault()
        run()
      }}
    >
      <div class="command-field">
        <span class="prompt" aria-hidden="true">
          $
        </span>
        <input
          ref={input}
          type="text"
          aria-label="Command"
          aria-describedby="command-keys"
          placeholder={server.status === 'sleeping' ? 'The server sleeps: a command wakes it' : 'ls -la'}
          value={line}
          autocomplete="off"
          autocapitalize="off"
          spellcheck={false}
          onInput={({ currentTarget }) => {
            place.current.at = -1
            setLine(currentTarget.value)
          }}
          onKeyDown={(event) => {
            const step = { ArrowUp: 1, ArrowDown: -1 }[event.key]
            if (step !== undefined) {
              event.preventDefault()
              recall(step)
            } else if (isRunning && (event.key === 'Escape' || isInterrupt(event))) {
              event.preventDefault()
              onCancel()
            }
          }}
        />
        {isRunning ? (
          <Button look="danger" icon="stop" onClick={onCancel}>
            Cancel
          </Button>
        ) : (
          <Button type="submit" look="primary" icon="play">
            Run
          </Button>
        )}
      </div>
      <div class="command-hint">
        <p class="quiet" id="command-keys">
          Runs in the workspace by <code>sh -c</code>. <kbd>↑</kbd> <kbd>↓</kbd> earlier commands,{' '}
          <kbd>Esc</kbd> cancels. It goes on while you look at other screens, and ends with the page; in the
          background it runs on.
        </p>
        <Button
          look="quiet"
          disabled={line.trim() === ''}
          onClick={() => runInBackground(dashboard, server.id, line)}
        >
          Run in the background
        </Button>
        {hasEnded && (
          <Button look="quiet" onClick={() => commands.clear(server.id)}>
            Clear
          </Button>
        )}
      </div>
      <CommandLines
        berth={`berth exec ${server.id} -- ${shellQuoted(shown)}`}
        method="POST"
        path={`/servers/${server.id}/exec`}
        body={body}
      />
    </form>
  )
}

/** Reports whether a key interrupts as in a terminal. With a selection it copies. */
const isInterrupt = ({ key, ctrlKey, currentTarget }: KeyboardEvent): boolean =>
  key === 'c' &&
  ctrlKey &&
  currentTarget instanceof HTMLInputElement &&
  currentTarget.selectionStart === currentTarget.selectionEnd

/** A command with what it printed and how it ended. */
function RunView({ run, onAgain }: { run: CommandRun; onAgain: (() => void) | undefined }) {
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
