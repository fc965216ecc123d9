import type { Extension } from '@codemirror/state'

/** Loads what colours a language, by the extension of its files. */
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
 */
const MOST_IN_PARAGRAPH = 10_000

type LegacyMode = Parameters<typeof import('@codemirror/language').StreamLanguage.define>[0]

const legacy = async (mode: LegacyMode): Promise<Extension> =>
  (await import('@codemirror/language')).StreamLanguage.define(mode)

/** Returns what colours a text by the name of its file; nothing if its language is not known, or it would take long. */
export async function languageOf(path: string, text: string): Promise<Extension> {
  if (path.endsWith('.md') && hasLongParagraph(text)) return []
  const load = LANGUAGES.find(([pattern]) => pattern.test(path))?.[1]
  return load ? load() : []
}

const hasLongParagraph = (text: string): boolean =>
  text.split(/\n\s*\n/).some(({ length }) => length > MOST_IN_PARAGRAPH)
