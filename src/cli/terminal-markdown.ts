import type { OutputStream } from './process-context.ts'

/** Widest lines of prose, in characters. */
const MOST_COLUMNS = 100

/** Renders a page of the guide for a terminal. References to other pages become the commands that show them. */
export function renderMarkdown(markdown: string, { columns = 80, hasColors }: OutputStream): string {
  const referred = markdown
    .replaceAll(/\[([\w-]+)\.md\]\(\1\.md(?:#[^)]*)?\)/g, '`berth guide $1`')
    .replaceAll(/\[([^\]]+)\]\(([\w-]+)\.md(?:#[^)]*)?\)/g, '$1 (`berth guide $2`)')
    .replaceAll(/\[([^\]]+)\]\(#[^)]*\)/g, '$1')
  return Bun.markdown.ansi(referred, { colors: hasColors, columns: Math.min(columns, MOST_COLUMNS) })
}
