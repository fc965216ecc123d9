import { useRef, useState } from 'preact/hooks'
import { messageOf } from '../../api/failure.ts'
import { Button } from '../../components/button.tsx'
import { CommandLines } from '../../components/command-lines.tsx'
import { Dialog } from '../../components/dialog.tsx'
import { LazyEditor } from '../../components/editor/lazy-editor.tsx'
import { useDashboard } from '../../dashboard.ts'
import { DryRun } from './dry-run.tsx'
import { type Mistakes, mistakesIn, parseText, TextError } from './mistakes.ts'
import { CONTROL, positionOf, type Scenarios, type ScenarioText, textOf } from './use-scenarios.ts'

/** Properties of the dialog. */
interface ScenarioDialogProps {
  title: string
  /** The scenario to begin with. */
  scenario: ScenarioText
  /** Its position among those that the control API has set; null if it is a new one. */
  index: number | null
  scenarios: Scenarios
  /** What a person has to know before it is saved. */
  notes?: readonly string[]
  onClose: () => void
}

/** Edits a scenario as JSON, tries it before it is saved, and says at its line what is wrong with it. */
export function ScenarioDialog({ title, scenario, index, scenarios, notes, onClose }: ScenarioDialogProps) {
  const { notices } = useDashboard()
  const [initial] = useState(() => `${JSON.stringify(scenario, null, 2)}\n`)
  const text = useRef(initial)
  const [mistakes, setMistakes] = useState<Mistakes | null>(null)
  const at = index ?? 0
  const placed = (set: readonly ScenarioText[]): readonly ScenarioText[] => {
    const edited = parseText(text.current) as ScenarioText
    return index === null ? [edited, ...set] : set.with(positionOf(scenario, index, set), edited)
  }
  /** Does something with the text; what is wrong with that is shown at its place. */
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
        scenarios={() => placed(set.filter(({ source }) => source === CONTROL).map(textOf))}
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
