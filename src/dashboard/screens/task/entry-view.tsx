import { Icon } from '../../components/button.tsx'
import { bytesText, drawable } from '../../components/text.ts'
import { refusedOf, type Said, type ToolUse, type TranscriptEntry } from './transcript.ts'

/** An entry of the conversation. */
export const EntryView = ({ entry }: { entry: TranscriptEntry }) =>
  entry.kind === 'tool' ? <ToolView use={entry} /> : <SaidView said={entry} />

/** The speakers of entries. */
export const SPEAKERS: Readonly<Record<Said['kind'], string>> = {
  message: 'Agent',
  question: 'Agent asks',
  answer: 'You',
  notice: 'berth',
  terminal: 'Agent',
  status: 'Result',
}

const SaidView = ({ said }: { said: Said }) =>
  said.isFailure ? <FailedView text={drawable(said.text)} /> : <SpokenView said={said} />

/** Why a task failed: a sentence, and the output as small as in the log. */
function FailedView({ text }: { text: string }) {
  const [sentence = '', ...printed] = text.trim().split('\n')
  return (
    <div class="said failed">
      <p class="speaker">Why it failed</p>
      <p class="words">{sentence}</p>
      {printed.length > 0 && <pre>{printed.join('\n')}</pre>}
    </div>
  )
}

const SpokenView = ({ said }: { said: Said }) => (
  <div class={`said ${said.kind}`}>
    <p class="speaker">{SPEAKERS[said.kind]}</p>
    <p class="words">{drawable(said.text)}</p>
  </div>
)

/** A use of a tool: folded if it went well, open while it runs and if it failed. */
function ToolView({ use }: { use: ToolUse }) {
  const { result } = use
  const state = result === null ? 'active' : result.ok ? 'good' : 'bad'
  return (
    <details class={`tool ${state}`} open={result === null || !result.ok || use.tool === 'write'}>
      <summary>
        <Icon name={use.tool === 'run' ? 'terminal' : 'file'} />
        <code>{headline(use)}</code>
        <span class="quiet">{outcome(use)}</span>
        <Icon name="right" />
      </summary>
      <Output use={use} />
      {refusedOf(use).map((sentence) => (
        <p class="notice" key={sentence}>
          {drawable(sentence)}
        </p>
      ))}
    </details>
  )
}

function Output({ use }: { use: ToolUse }) {
  const output = use.result?.output ?? {}
  const error = textOf(output.error)
  if (error !== '') return <pre>{error}</pre>
  const diff = textOf(output.diff)
  if (diff !== '') return <Diff text={diff} />
  if (use.tool === 'write') return <pre class="diff added">{textOf(use.input.content)}</pre>
  const stdout = textOf(output.stdout) || drawable(use.stdout)
  const stderr = textOf(output.stderr) || drawable(use.stderr)
  const content = textOf(output.content)
  if (stdout === '' && stderr === '' && content === '') return <p class="quiet">No output.</p>
  return (
    <>
      {stdout !== '' && <pre>{stdout}</pre>}
      {stderr !== '' && <pre class="stderr">{stderr}</pre>}
      {content !== '' && <pre>{content}</pre>}
    </>
  )
}

/** Describes a use of a tool in a line. */
export function headline({ tool, input }: ToolUse): string {
  if (tool === 'run') return `$ ${textOf(input.command)}`
  if (tool === 'search') return `search ${textOf(input.pattern)} ${textOf(input.path)}`
  return `${tool} ${textOf(input.path) || (tool === 'list' ? '.' : JSON.stringify(input))}`
}

/** Describes the end of a use of a tool in few words. */
export function outcome({ tool, result }: ToolUse): string {
  if (result === null) return 'runs …'
  const { output, ok } = result
  if (tool === 'run') return output.timedOut === true ? 'ran out of time' : `exit ${String(output.exitCode)}`
  if (!ok) return 'failed'
  if (typeof output.bytes === 'number') return bytesText(output.bytes)
  if (typeof output.files === 'number') return `${output.files} files`
  return typeof output.matches === 'number' ? `${output.matches} matches` : ''
}

const textOf = (value: unknown): string => (typeof value === 'string' ? drawable(value) : '')

/** Shows the unified difference of one file: added and removed lines in their colours. */
const Diff = ({ text }: { text: string }) => (
  <pre class="diff">
    {linesOf(text).map((line, index) => (
      <span key={index} class={lookOf(line)}>
        {`${line}\n`}
      </span>
    ))}
  </pre>
)

/** Returns the lines that are shown. */
function linesOf(text: string): string[] {
  const all = text.replace(/\n+$/, '').split('\n')
  // Both versions end without a line break: nothing differs there.
  const isSameEnd = all.filter(isAboutEnd).length > 1
  return all
    .filter((line) => !(isSameEnd && isAboutEnd(line)))
    .filter((line) => !/^(?:---|\+\+\+|={3})/.test(line)) // The two names of the file, which are shown above it.
}

/** Reports whether a line says that a version ends without a line break. */
const isAboutEnd = (line: string): boolean => line.startsWith('\\')

const lookOf = (line: string): string =>
  line.startsWith('+') ? 'added' : line.startsWith('-') ? 'removed' : line.startsWith('@@') ? 'place' : ''
