import { useRef, useState } from 'preact/hooks'
import type { ScenarioText } from '../../../agents/scripted/scenarios.ts'
import type { ResponseOf } from '../../../route-client/client.ts'
import { messageOf } from '../../../runtime/error-info.ts'
import { JsonDocument, JsonSyntaxError } from '../../../runtime/validation/json-document.ts'
import {
  type JsonPath,
  type MistakeKind,
  ValidationError,
} from '../../../runtime/validation/validation-error.ts'
import { ApiFailure } from '../../api/client.ts'
import { Button } from '../../components/button.tsx'
import { Dialog } from '../../components/dialog.tsx'
import { CommandLines, shellQuoted } from '../../components/http.tsx'
import { LazyEditor } from '../../components/lazy-editor.tsx'
import { useDashboard } from '../../dashboard.ts'
import {
  CONTROL_SOURCE,
  type ScenarioSet,
  StepList,
  scenarioPosition,
  scenarioTextOf,
} from './scenario-set.tsx'

/** Properties of the dialog. */
interface ScenarioDialogProps {
  title: string
  /** The scenario to begin with. */
  scenario: ScenarioText
  /** Its position among those that the control API has set; null if it is a new one. */
  index: number | null
  scenarios: ScenarioSet
  /** What a person has to know before it is saved. */
  notes?: readonly string[]
  onClose: () => void
}

/** Edits a scenario as JSON, tries it before it is saved, and shows each mistake at its line. */
export function ScenarioDialog({ title, scenario, index, scenarios, notes, onClose }: ScenarioDialogProps) {
  const { notices } = useDashboard()
  const [initial] = useState(() => `${JSON.stringify(scenario, null, 2)}\n`)
  const text = useRef(initial)
  const [mistakes, setMistakes] = useState<Mistakes | null>(null)
  const at = index ?? 0
  const placed = (set: readonly ScenarioText[]): readonly ScenarioText[] => {
    const edited = parseText(text.current) as ScenarioText
    return index === null ? [edited, ...set] : set.with(scenarioPosition(scenario, index, set), edited)
  }
  /** Does something with the text; its mistakes are shown at their places. */
  const attempt = async (work: () => Promise<void>): Promise<boolean> => {
    setMistakes(null)
    try {
      await work()
      return true
    } catch (error) {
      const reported = error instanceof TextError ? error.mistakes : null
      const found = reported ?? mistakesIn(text.current, error, ['scenarios', at])
      setMistakes(found ?? { message: messageOf(error), lines: [] })
      return false
    }
  }
  const save = async (): Promise<void> => {
    const isSaved = await attempt(() => scenarios.replace(placed))
    if (!isSaved) return
    notices.done('The scenario is set.', { label: 'All scenarios', href: '/dashboard/controls/scenarios' })
    onClose()
  }
  const set = scenarios.all instanceof Error ? [] : (scenarios.all ?? [])
  return (
    <Dialog title={title} isWide isKept onClose={onClose}>
      {notes?.map((note) => (
        <p class="notice" key={note}>
          {note}
        </p>
      ))}
      <div class="scenario-text">
        <LazyEditor
          path="scenario.json"
          text={initial}
          markedLines={mistakes?.lines ?? NONE}
          onChange={(changed) => {
            text.current = changed
          }}
          onSave={() => void save()}
        />
      </div>
      {mistakes && (
        <p class="notice failure" role="alert">
          {mistakes.message}
        </p>
      )}
      <DryRun
        attempt={attempt}
        scenarios={() => placed(set.filter(({ source }) => source === CONTROL_SOURCE).map(scenarioTextOf))}
      />
      <div class="actions">
        <Button look="primary" onClick={save}>
          Save
        </Button>
        <Button onClick={onClose}>Cancel</Button>
        <span class="quiet">
          The first that matches wins. <a href="/docs/guide/scenarios">Steps and matches</a>
        </span>
      </div>
      <CommandLines
        berth="berth scenarios set FILE"
        method="PUT"
        path="/_berth/scenarios"
        body={{ scenarios: [scenario] }}
      />
    </Dialog>
  )
}

const NONE: readonly number[] = []

/** What is wrong with a text: sentences, and the lines that they are about, from 1. */
interface Mistakes {
  readonly message: string
  readonly lines: readonly number[]
}

/** A text that is not as it has to be. */
class TextError extends Error {
  override readonly name = 'TextError'

  constructor(readonly mistakes: Mistakes) {
    super(mistakes.message)
  }
}

/** Parses a JSON text. @throws TextError */
function parseText(text: string): unknown {
  try {
    return new JsonDocument(text).value
  } catch (error) {
    if (!(error instanceof JsonSyntaxError)) throw error
    throw new TextError(mistakesOf(error.message.replace(' The file must be valid JSON.', '')))
  }
}

/** Mistakes of a body, as the API reports them: the path, the rest of the sentence, and the reason. */
const MISTAKE =
  /"([^"]+)" in the body( is missing: expected |: | is not a known field)(.*?)(?= "[^"]+" in the body[: ]|$)/gs

const KINDS: Readonly<Record<string, MistakeKind>> = {
  ': ': 'value',
  ' is missing: expected ': 'missing',
  ' is not a known field': 'unknown',
}

/**
 * Returns the mistakes in a value that a failed call reports, at their places in the text of the value.
 *
 * @param above the path of the value in the body
 */
function mistakesIn(text: string, failure: unknown, above: JsonPath): Mistakes | null {
  if (!(failure instanceof ApiFailure) || failure.status !== 400) return null
  const found = [...failure.message.matchAll(MISTAKE)].flatMap(([, path = '', words = '', reason = '']) => {
    const steps = pathOf(path)
    if (above.some((step, index) => steps[index] !== step)) return []
    return [new ValidationError(steps.slice(above.length), reason.trim(), KINDS[words] ?? 'value')]
  })
  const [first, ...others] = found
  return first ? mistakesOf(new JsonDocument(text).describe(first.with(others))) : null
}

const mistakesOf = (message: string): Mistakes => ({
  message: message.replace(/^l/, 'L'),
  lines: [...message.matchAll(/\bline (\d+), column/gi)].map(([, line]) => Number(line)),
})

/** Parses a path in writing: `scenarios[1].steps[0].run`. */
const pathOf = (path: string): JsonPath =>
  [...path.matchAll(/\[(\d+)\]|[^.[\]]+/g)].map(([word, index]) =>
    index === undefined ? word : Number(index),
  )

type Preview = ResponseOf<'control.scenarios.preview'>

/** Properties of a dry run. */
interface DryRunProps {
  /** Returns the scenarios to try in place of those that were set; by default those that hold. */
  scenarios?: (() => readonly ScenarioText[]) | undefined
  /** Called with the position of the scenario that would take the goal, null if none would. */
  onFound?: (index: number | null) => void
  /** Does the look-up, and shows its failure; by default as any failure. */
  attempt?: (work: () => Promise<void>) => Promise<boolean>
}

/** Asks for a goal, and says which scenario would take it with which steps. Nothing is done. */
export function DryRun({ scenarios, onFound, attempt }: DryRunProps) {
  const { api, notices } = useDashboard()
  const [goal, setGoal] = useState('')
  const [preview, setPreview] = useState<Preview | null>(null)
  const look = async (): Promise<void> => {
    const given = scenarios?.()
    const body = { goal, ...(given && { scenarios: [...given] }) }
    const found = await api.call('control.scenarios.preview', { body })
    setPreview(found)
    onFound?.(found.scenario?.index ?? null)
  }
  return (
    <div class="dry-run">
      <form
        class="actions"
        onSubmit={(event) => {
          event.preventDefault()
          void (attempt ?? ((work) => notices.attempt(work)))(look)
        }}
      >
        <input
          type="text"
          required
          aria-label="Goal to try"
          placeholder="A goal, to see what would be done"
          value={goal}
          onInput={({ currentTarget }) => setGoal(currentTarget.value)}
        />
        <Button type="submit" icon="play">
          Try
        </Button>
      </form>
      <div aria-live="polite">{preview && <Found preview={preview} />}</div>
      {preview && scenarios === undefined && (
        <CommandLines
          berth={`berth scenarios preview ${shellQuoted(goal)}`}
          method="POST"
          path="/_berth/scenarios/preview"
          body={{ goal }}
        />
      )}
    </div>
  )
}

/** What would be done about a goal. */
function Found({ preview: { by, scenario, values, steps, problem } }: { preview: Preview }) {
  if (problem !== null) return <p class="notice failure">It would fail at once. {problem}</p>
  if (by === 'nothing')
    return <p class="notice">No scenario matches, and the goal has no directive: nothing would be done.</p>
  const given = Object.entries(values)
  return (
    <div class="notice">
      {scenario === null ? (
        <p>No scenario matches. The goal has its own directives:</p>
      ) : (
        <p>
          <strong>
            <bdi>{scenario.name}</bdi>
          </strong>{' '}
          would take it{' '}
          <span class="quiet">({scenario.source === CONTROL_SOURCE ? 'set here' : scenario.source})</span>
        </p>
      )}
      {given.length > 0 && (
        <dl class="facts">
          {given.map(([name, value]) => (
            <>
              <dt>
                <code>{name}</code>
              </dt>
              <dd>{value === '' ? <span class="quiet">empty</span> : <bdi>{value}</bdi>}</dd>
            </>
          ))}
        </dl>
      )}
      <StepList steps={steps} />
    </div>
  )
}
