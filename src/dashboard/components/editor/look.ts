import { HighlightStyle, syntaxHighlighting } from '@codemirror/language'
import type { Extension } from '@codemirror/state'
import { EditorView } from '@codemirror/view'
import { tags } from '@lezer/highlight'

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

/** Returns what gives an editor the look of the page, in both schemes. */
export const editorLook = (nonce: string): Extension => [
  EditorView.cspNonce.of(nonce),
  theme,
  syntaxHighlighting(colours),
]
