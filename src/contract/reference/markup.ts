import { Html, html, type Part } from '../../http/pages/html.ts'

/** Matches code, bold text, and links to the instance or by HTTPS, of a description in Markdown. */
const INLINE = /`([^`]+)`|\*\*([^*]+)\*\*|\[([^\]]+)\]\(((?:\/|https:\/\/)[^\s)]*)\)/g

/** Renders a line of a description: code, bold text and links. All else is text, also what looks like HTML. */
export function inline(text: string): Part {
  const parts: Part[] = []
  let from = 0
  for (const { 0: whole, 1: code, 2: bold, 3: label, 4: target, index } of text.matchAll(INLINE)) {
    parts.push(text.slice(from, index))
    if (code !== undefined) parts.push(html`<code>${code}</code>`)
    else if (bold !== undefined) parts.push(html`<strong>${bold}</strong>`)
    else parts.push(html`<a href="${target}">${label}</a>`)
    from = index + whole.length
  }
  return [...parts, text.slice(from)]
}

/** Renders a description: a paragraph for each block of lines. */
export const prose = (text: string): Html[] =>
  text
    .split(/\n\s*\n/)
    .filter((paragraph) => paragraph.trim() !== '')
    .map((paragraph) => html`<p>${inline(paragraph)}</p>\n`)

/** Matches strings, names of fields, numbers and literals of JSON. */
const JSON_TOKEN = /("(?:[^"\\]|\\.)*")(\s*:)?|-?\b\d+(?:\.\d+)?(?:e[+-]?\d+)?\b|\b(?:true|false|null)\b/gi

/** Renders a value as JSON with colours. */
export const json = (value: unknown): Html =>
  colored(JSON.stringify(value, null, 2), JSON_TOKEN, ([token = '', text, colon]) =>
    colon !== undefined ? 'name' : text !== undefined ? 'string' : /^-?\d/.test(token) ? 'number' : 'keyword',
  )

/** Matches strings and keywords of a command line or of JavaScript. */
const CODE_TOKEN =
  /"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|`(?:[^`\\]|\\.)*`|\b(?:const|await|new|import|from)\b|(?<=^|\n)(?:curl|berth)\b/g

/** Renders a command line or JavaScript with colours. */
export const code = (text: string): Html =>
  colored(text, CODE_TOKEN, ([token = '']) => (/^["'`]/.test(token) ? 'string' : 'keyword'))

function colored(text: string, tokens: RegExp, kindOf: (match: RegExpExecArray) => string): Html {
  const parts: Part[] = []
  let from = 0
  for (const match of text.matchAll(tokens)) {
    const [whole, , colon = ''] = match
    const token = whole.slice(0, whole.length - colon.length)
    parts.push(
      text.slice(from, match.index),
      new Html(`<i class="${kindOf(match)}">`),
      token,
      new Html('</i>'),
    )
    from = match.index + token.length
  }
  return html`${[...parts, text.slice(from)]}`
}
