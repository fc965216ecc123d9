import { Help } from 'commander'
import { CONNECTION_GROUP } from './runner.ts'

/** Orders the groups of a help text, the connection options last. It overrides a method of the library's Help. */
export const groupItems: Help['groupItems'] = (unsorted, visible, groupOf) => {
  const groups = Help.prototype.groupItems(unsorted, visible, groupOf)
  const last = groups.get(CONNECTION_GROUP)
  if (last && groups.delete(CONNECTION_GROUP)) groups.set(CONNECTION_GROUP, last)
  return groups
}

/**
 * Wraps the paragraphs of a help text that are wider than the terminal. Indented lines are lists and examples, and
 * stay unchanged like paragraphs that fit.
 */
export function reflow(text: string, width: number): string {
  const out: string[] = []
  let paragraph: string[] = []
  const flush = () => {
    out.push(...(paragraph.some((line) => line.length > width) ? wrapParagraph(paragraph, width) : paragraph))
    paragraph = []
  }
  for (const line of text.split('\n')) {
    if (/^\S/.test(line)) paragraph.push(line)
    else {
      flush()
      out.push(line)
    }
  }
  flush()
  return out.join('\n')
}

function wrapParagraph(paragraph: readonly string[], width: number): string[] {
  const lines: string[] = []
  let line = ''
  for (const word of paragraph.join(' ').split(' ')) {
    if (line !== '' && line.length + 1 + word.length > width) {
      lines.push(line)
      line = word
    } else line = line === '' ? word : `${line} ${word}`
  }
  return [...lines, line]
}
