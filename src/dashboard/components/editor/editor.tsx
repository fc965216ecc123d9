import { defaultKeymap, history, historyKeymap, indentWithTab } from '@codemirror/commands'
import { bracketMatching, indentOnInput } from '@codemirror/language'
import { highlightSelectionMatches, searchKeymap } from '@codemirror/search'
import { Compartment, EditorState } from '@codemirror/state'
import {
  drawSelection,
  EditorView,
  highlightActiveLine,
  highlightActiveLineGutter,
  keymap,
  lineNumbers,
} from '@codemirror/view'
import { useEffect, useRef } from 'preact/hooks'
import { useDashboard } from '../../dashboard.ts'
import { languageOf } from './languages.ts'
import { editorLook } from './look.ts'
import { markedLines, markLines } from './marked-lines.ts'

/** Properties of an editor. */
export interface EditorProps {
  /** Decides the language. Another path begins anew. */
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
  // Not for another text: what is edited must not begin anew.
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
