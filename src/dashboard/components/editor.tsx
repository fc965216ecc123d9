import { defaultKeymap, history, historyKeymap, indentWithTab } from '@codemirror/commands'
import { bracketMatching, HighlightStyle, indentOnInput, syntaxHighlighting } from '@codemirror/language'
import { highlightSelectionMatches, searchKeymap } from '@codemirror/search'
import { Compartment, EditorState, type Extension, StateEffect, StateField } from '@codemirror/state'
import {
  Decoration,
  type DecorationSet,
  drawSelection,
  EditorView,
  highlightActiveLine,
  highlightActiveLineGutter,
  keymap,
  lineNumbers,
} from '@codemirror/view'
import { tags } from '@lezer/highlight'
import { useEffect, useRef } from 'preact/hooks'
import { useDashboard } from '../dashboard.ts'

/** Properties of an editor. */
export interface EditorProps {
  /** Decides the language. Another path opens another editor. */
  path: string
  /** The text to begin with. */
  text: string
  isReadOnly?: boolean
  /** Numbers of the lines that have a mistake, from 1. */
  markedLines?: readonly number[]
  onChange: (text: string) => void
  /** Called on Ctrl-S and Cmd-S. */
  onSave: () => void
}

/** An editor for a text file. Escape, then Tab leaves it by the keyboard. */
export function Editor({
  path,
  text,
  isReadOnly = false,
  markedLines: marks,
  onChange,
  onSave,
}: EditorProps) {
  const { context } = useDashboard()
  const place = useRef<HTMLDivElement>(null)
  const shown = useRef<EditorView | null>(null)
  const handlers = useRef({ onChange, onSave })
  handlers.current = { onChange, onSave }
  // Not for another text: that would discard what was typed.
  useEffect(() => {
    if (!place.current) return
    const language = new Compartment()
    const save = (): boolean => {
      handlers.current.onSave()
      return true
    }
    const view = new EditorView({
      parent: place.current,
      state: EditorState.create({
        doc: text,
        extensions: [
          lineNumbers(),
          history(),
          drawSelection(),
          indentOnInput(),
          bracketMatching(),
          highlightActiveLine(),
          highlightActiveLineGutter(),
          highlightSelectionMatches(),
          keymap.of([
            { key: 'Mod-s', run: save, preventDefault: true },
            ...defaultKeymap,
            ...searchKeymap,
            ...historyKeymap,
            indentWithTab,
          ]),
          EditorState.readOnly.of(isReadOnly),
          EditorView.contentAttributes.of({ 'aria-label': `Content of ${path}` }),
          EditorView.updateListener.of(({ docChanged, state }) => {
            if (docChanged) handlers.current.onChange(state.doc.toString())
          }),
          language.of([]),
          markedLines,
          editorLook(context.nonce),
        ],
      }),
    })
    shown.current = view
    void languageOf(path, text).then((extension) =>
      view.dispatch({ effects: language.reconfigure(extension) }),
    )
    return () => view.destroy()
  }, [context, path])
  useEffect(() => {
    if (marks) shown.current?.dispatch({ effects: markLines.of(marks) })
  }, [marks])
  return <div class="editor" ref={place} />
}

/** Loads the highlighting of a language, by the extension of its files. */
const LANGUAGES: readonly (readonly [RegExp, () => Promise<Extension>])[] = [
  [
    /\.[cm]?[jt]sx?$/,
    async () => (await import('@codemirror/lang-javascript')).javascript({ jsx: true, typescript: true }),
  ],
  [/\.json[c5]?$/, async () => (await import('@codemirror/lang-json')).json()],
  [/\.(?:html?|svg|xml|vue|svelte)$/, async () => (await import('@codemirror/lang-html')).html()],
  [/\.css$/, async () => (await import('@codemirror/lang-css')).css()],
  [/\.py$/, async () => (await import('@codemirror/lang-python')).python()],
  [/\.md$/, async () => (await import('@codemirror/lang-markdown')).markdown()],
  [/\.ya?ml$/, async () => (await import('@codemirror/lang-yaml')).yaml()],
  [
    /(?:\.sh|\.bash|\.env.*|Dockerfile|Procfile)$/,
    async () => legacy((await import('@codemirror/legacy-modes/mode/shell')).shell),
  ],
  [/\.toml$/, async () => legacy((await import('@codemirror/legacy-modes/mode/toml')).toml)],
]

/**
 * Characters of a paragraph of Markdown up to which it is coloured. The parser takes a paragraph at once, and may take a
 * hundred times as long for ten times as many.
 * @bound program
 */
const MOST_IN_PARAGRAPH = 10_000

type LegacyMode = Parameters<typeof import('@codemirror/language').StreamLanguage.define>[0]

const legacy = async (mode: LegacyMode): Promise<Extension> =>
  (await import('@codemirror/language')).StreamLanguage.define(mode)

/** Returns the highlighting of a text by its file name; none if its language is unknown, or if that would take long. */
async function languageOf(path: string, text: string): Promise<Extension> {
  if (path.endsWith('.md') && hasLongParagraph(text)) return []
  const load = LANGUAGES.find(([pattern]) => pattern.test(path))?.[1]
  return load ? load() : []
}

const hasLongParagraph = (text: string): boolean =>
  text.split(/\n\s*\n/).some(({ length }) => length > MOST_IN_PARAGRAPH)

const colours = HighlightStyle.define([
  { tag: [tags.keyword, tags.modifier, tags.operatorKeyword], color: 'var(--color-code-keyword)' },
  {
    tag: [
      tags.function(tags.variableName),
      tags.propertyName,
      tags.tagName,
      tags.attributeName,
      tags.heading,
    ],
    color: 'var(--color-code-name)',
  },
  { tag: [tags.string, tags.special(tags.string), tags.regexp], color: 'var(--color-code-string)' },
  { tag: [tags.number, tags.bool, tags.null, tags.atom], color: 'var(--color-code-number)' },
  { tag: [tags.comment, tags.meta], color: 'var(--color-code-comment)' },
  { tag: tags.heading, fontWeight: '600' },
])

const theme = EditorView.theme({
  '&': { height: '100%', backgroundColor: 'var(--color-surface)', color: 'var(--color-text)' },
  '&.cm-focused': { outline: 'none' },
  '.cm-scroller': { fontFamily: 'var(--font-mono)', fontSize: '0.8125rem', lineHeight: '1.55' },
  '.cm-content': { caretColor: 'var(--color-text)' },
  '.cm-cursor': { borderLeftColor: 'var(--color-text)' },
  '.cm-gutters': {
    border: '0',
    backgroundColor: 'var(--color-surface)',
    color: 'var(--color-muted)',
  },
  '.cm-mistake': {
    backgroundColor: 'var(--color-danger-soft)',
    boxShadow: 'inset 3px 0 var(--color-danger)',
  },
  '.cm-activeLine, .cm-activeLineGutter': { backgroundColor: 'var(--color-sunken)' },
  '&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground': {
    backgroundColor: 'var(--color-accent-soft)',
  },
  '.cm-panels': { backgroundColor: 'var(--color-raised)', color: 'var(--color-text)' },
  '.cm-searchMatch': { backgroundColor: 'var(--color-waiting-soft)' },
})

/** Returns the extensions that give an editor the look of the page, in both schemes. */
const editorLook = (nonce: string): Extension => [
  EditorView.cspNonce.of(nonce),
  theme,
  syntaxHighlighting(colours),
]

/** Marks other lines than before, each by its number from 1. */
const markLines = StateEffect.define<readonly number[]>()

const line = Decoration.line({ class: 'cm-mistake' })

/** Shows the lines that have a mistake. A mark moves with its line, and stays until others are set. */
const markedLines = StateField.define<DecorationSet>({
  create: () => Decoration.none,
  update: (marks, { changes, effects, state }) =>
    effects.reduce<DecorationSet>((kept, effect) => {
      if (!effect.is(markLines)) return kept
      const numbers = effect.value.filter((number) => number >= 1 && number <= state.doc.lines)
      return Decoration.set(
        [...new Set(numbers)].sort((a, b) => a - b).map((number) => line.range(state.doc.line(number).from)),
      )
    }, marks.map(changes)),
  provide: (field) => EditorView.decorations.from(field),
})
