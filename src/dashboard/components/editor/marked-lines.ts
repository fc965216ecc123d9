import { StateEffect, StateField } from '@codemirror/state'
import { Decoration, type DecorationSet, EditorView } from '@codemirror/view'

/** Marks other lines than before, each by its number from 1. */
export const markLines = StateEffect.define<readonly number[]>()

const line = Decoration.line({ class: 'cm-mistake' })

/** Shows the lines that have a mistake. A mark moves with its line, and stays until others are set. */
export const markedLines = StateField.define<DecorationSet>({
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
