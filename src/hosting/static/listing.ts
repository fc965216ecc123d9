import type { DirectoryEntry } from '../../compute/workspace.ts'
import { escapeHtml } from '../sites/own-response.ts'

/** Largest number of entries in a listing. */
const SHOWN = 10_000

/**
 * Returns a page that lists a directory, without names that begin with a dot.
 *
 * @param names path of the directory from the site's root
 */
export function listingPage(names: readonly string[], entries: readonly DirectoryEntry[]): string {
  const title = escapeHtml(`/${names.map((name) => `${name}/`).join('')}`)
  const visible = entries.filter(({ name, kind }) => !name.startsWith('.') && kind !== 'other')
  const links = visible.slice(0, SHOWN).map(({ name, kind }) => {
    const tail = kind === 'directory' ? '/' : ''
    // Without "./", a name with a colon would be read as a URL scheme.
    return `<li><a href="./${encodeURIComponent(name)}${tail}">${escapeHtml(name)}${tail}</a></li>`
  })
  if (names.length > 0) links.unshift('<li><a href="../">../</a></li>')
  if (visible.length > SHOWN) links.push(`<li>and ${visible.length - SHOWN} more</li>`)
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>${title}</title>
</head>
<body>
<h1>${title}</h1>
<ul>
${links.join('\n')}
</ul>
</body>
</html>
`
}
