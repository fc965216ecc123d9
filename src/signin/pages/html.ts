/** HTML that needs no escaping any more. */
export class Html {
  constructor(readonly text: string) {}

  toString(): string {
    return this.text
  }
}

/** What a template takes: texts are escaped, lists joined; null, undefined and false are nothing. */
export type Part = Html | string | number | null | undefined | false | readonly Part[]

/** Writes HTML; whatever is put in is escaped unless it is `Html` itself. For elements' content and quoted attributes. */
export function html(texts: TemplateStringsArray, ...parts: readonly Part[]): Html {
  return new Html(texts.map((text, index) => text + write(parts[index])).join(''))
}

function write(part: Part): string {
  if (part === null || part === undefined || part === false) return ''
  if (part instanceof Html) return part.text
  if (typeof part === 'object') return part.map(write).join('')
  return Bun.escapeHTML(part)
}
