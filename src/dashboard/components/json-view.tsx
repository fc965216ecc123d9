import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import { Button } from './button.tsx'

/** Characters of a text, and entries of a list, that are shown at first. */
const SHOWN_TEXT = 1_000
const SHOWN_ENTRIES = 50

/** Levels that are open at first. */
const OPEN_LEVELS = 3

/** A value of JSON, foldable. What is long is cut, says how much is left, and can be shown whole. */
export const JsonView = ({ value }: { value: unknown }) => (
  <div class="json">
    <Value value={value} level={0} />
  </div>
)

/** A value, after its name if it has one. */
function Value({ value, level, name }: { value: unknown; level: number; name?: string | undefined }) {
  const key = name !== undefined && <Name name={name} />
  if (typeof value !== 'object' || value === null)
    return (
      <div class="json-line">
        {key}
        <Scalar value={value} />
      </div>
    )
  const entries = Object.entries(value)
  const [open, close] = Array.isArray(value) ? ['[', ']'] : ['{', '}']
  if (entries.length === 0)
    return (
      <div class="json-line">
        {key}
        {open}
        {close}
      </div>
    )
  return (
    <details open={level < OPEN_LEVELS}>
      <summary>
        {key}
        {open}
        <span class="json-closed">
          {' '}
          <span class="json-count">{entries.length}</span> {close}
        </span>
      </summary>
      <div class="json-inside">
        <Entries entries={entries} isList={Array.isArray(value)} level={level + 1} />
      </div>
      <div class="json-line">{close}</div>
    </details>
  )
}

function Entries({
  entries,
  isList,
  level,
}: {
  entries: readonly (readonly [string, unknown])[]
  isList: boolean
  level: number
}) {
  const [most, setMost] = useState(SHOWN_ENTRIES)
  const left = entries.length - most
  return (
    <>
      {entries.slice(0, most).map(([name, value]) => (
        <Value key={name} name={isList ? undefined : name} value={value} level={level} />
      ))}
      {left > 0 && <Button onClick={() => setMost(most * 10)}>{left} more</Button>}
    </>
  )
}

const Name = ({ name }: { name: string }) => (
  <>
    <bdi class="json-name">{name}</bdi>:{' '}
  </>
)

function Scalar({ value }: { value: unknown }): ComponentChildren {
  if (typeof value === 'string')
    return (
      <bdi class="json-string">
        <LongText text={JSON.stringify(value)} />
      </bdi>
    )
  if (typeof value === 'number') return <span class="json-number">{String(value)}</span>
  return <span class="json-word">{String(value)}</span>
}

/** A text, cut if it is long, with a button that shows the rest. */
export function LongText({ text }: { text: string }) {
  const [isWhole, setWhole] = useState(false)
  if (isWhole || text.length <= SHOWN_TEXT) return <>{text}</>
  return (
    <>
      {text.slice(0, SHOWN_TEXT)}…{' '}
      <Button onClick={() => setWhole(true)}>
        {(text.length - SHOWN_TEXT).toLocaleString('en')} more characters
      </Button>
    </>
  )
}
