import { page } from '../docs/pages.ts'

/** The lines that the README's tour has its reader type in the second terminal. */
export const TOUR = [...section('## A tour').matchAll(/^```sh\n([\s\S]*?)^```$/gm)]
  .map(([, lines]) => lines)
  .join('')

/** What the commands of the tour print, among other lines. */
const SHOWN = ['is ready at http://', 'data: {"exitCode":3', '✓ Signed with', '/signin/link/']

/** Returns what a tour should have printed and has not. @param user whose rights programs of a server have there */
export const missingIn = (output: string, user: string): string[] =>
  [`hello\n${user}\n`, ...SHOWN].filter((text) => !output.includes(text))

/** Returns the README from a heading to the next one. */
function section(heading: string): string {
  const [, text = ''] = page('README.md').text.split(`\n${heading}`)
  return text.split('\n## ')[0] ?? ''
}
