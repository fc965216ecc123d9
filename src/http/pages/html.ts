/** HTML that is already escaped. */
export class Html {
  constructor(readonly text: string) {}

  toString(): string {
    return this.text
  }
}

/** A value in a template: texts are escaped, lists are joined; null, undefined and false render nothing. */
export type Part = Html | string | number | null | undefined | false | readonly Part[]

/**
 * Builds HTML. Values are escaped unless they are `Html`. Use it only for content of elements and quoted attributes.
 */
export function html(texts: TemplateStringsArray, ...parts: readonly Part[]): Html {
  return new Html(texts.map((text, index) => text + write(parts[index])).join(''))
}

function write(part: Part): string {
  if (part === null || part === undefined || part === false) return ''
  if (part instanceof Html) return part.text
  if (typeof part === 'object') return part.map(write).join('')
  return Bun.escapeHTML(part)
}
