import { guideIndex, guidePage } from '../../http/docs/guide/pages.ts'
import { searchGuide } from '../../http/docs/guide/search.ts'
import { action } from '../command.ts'
import { CommandError } from '../errors.ts'
import { paint } from '../output.ts'
import type { OutputStream, ProcessContext } from '../process-context.ts'

/** Most matches that a search prints. */
const MATCHES = 20

/** Where commands are explained, since many names of commands are words of the guide. */
const COMMANDS_HINT = '"berth help COMMAND" explains a command.'

/** `berth guide` */
export const guide = action({
  usage: 'guide [TOPIC...]',
  summary: 'read or search the guide, which is part of berth',
  description:
    'Prints a page of the guide, or the parts of it that have the words. Without TOPIC it lists the pages.',
  access: 'none',
  json: 'the pages, the page or the matches as JSON, for programs',
  help: `
On a terminal a page is shown by $PAGER (less by default). Elsewhere it is printed as Markdown.
An instance shows the same at /docs/guide.

Examples:
  berth guide
  berth guide faults
  berth guide idempotency key
`,
  async run({ session, args: [words], print }) {
    const { context } = session
    const { stdout } = context
    const [only] = words
    if (only === undefined) {
      const groups = await guideIndex()
      return print(groups, () => indexText(stdout, groups))
    }
    const page = words.length === 1 ? await guidePage(only.replace(/\.md$/, '')) : null
    if (page) {
      return print(page, async () => {
        if (!stdout.isTTY) return page.markdown
        await printPaged(renderMarkdown(page.markdown, stdout), context)
        return ''
      })
    }
    // Those who expect a command to search with type it.
    const sought = words.length > 1 && only === 'search' ? words.slice(1) : words
    const matches = (await searchGuide(sought)).slice(0, MATCHES)
    if (matches.length === 0) {
      const all = sought.map((word) => `"${word}"`).join(' and ')
      throw new CommandError(
        `Nothing in the guide has ${all}. "berth guide" lists its pages. ${COMMANDS_HINT}`,
      )
    }
    return print(
      matches.map(({ page: { name }, heading, fragment, excerpt }) => ({ name, heading, fragment, excerpt })),
      () =>
        matches
          .map(({ page: found, heading, excerpt }) => {
            const part = heading === found.title ? found.title : `${found.title}: ${heading}`
            return `${paint(stdout, 'bold', part)}\n  ${excerpt}\n  ${paint(stdout, 'dim', `berth guide ${found.name}`)}\n`
          })
          .concat(`${COMMANDS_HINT}\n`)
          .join('\n'),
    )
  },
})

function indexText(out: OutputStream, groups: Awaited<ReturnType<typeof guideIndex>>): string {
  const width = Math.max(...groups.flatMap(({ entries }) => entries.map(({ name }) => name.length)))
  const parts = groups.map(({ heading, entries }) =>
    [
      paint(out, 'bold', heading),
      ...entries.map(({ name, purpose }) => `  ${name.padEnd(width)}  ${purpose}`),
    ].join('\n'),
  )
  return `${parts.join('\n\n')}\n\n"berth guide TOPIC" shows a page, "berth guide WORDS" searches all of them.\n`
}

/** Widest lines of prose, in characters. @bound reader */
const MOST_COLUMNS = 100

/** Renders a page of the guide for a terminal. References to other pages become the commands that show them. */
function renderMarkdown(markdown: string, { columns = 80, hasColors }: OutputStream): string {
  const referred = markdown
    .replaceAll(/\[([\w-]+)\.md\]\(\1\.md(?:#[^)]*)?\)/g, '`berth guide $1`')
    .replaceAll(/\[([^\]]+)\]\(([\w-]+)\.md(?:#[^)]*)?\)/g, '$1 (`berth guide $2`)')
    .replaceAll(/\[([^\]]+)\]\(#[^)]*\)/g, '$1')
  return Bun.markdown.ansi(referred, { colors: hasColors, columns: Math.min(columns, MOST_COLUMNS) })
}

/**
 * Shows a text on the terminal by `$PAGER`, which is `less` by default. A text that fits the screen is only printed.
 * Without a pager the text is printed too.
 */
async function printPaged(text: string, { env, inherited, cwd, stdout }: ProcessContext): Promise<void> {
  const usual = Bun.which('less', { PATH: env.PATH ?? '' }) === null ? 'cat' : 'less'
  // An empty one is `cat`, as for man and Git.
  const pager = (inherited.PAGER ?? usual) || 'cat'
  // F ends at once if the text fits, R keeps colours, X leaves the text on the screen.
  const child = Bun.spawn(['sh', '-c', pager], {
    cwd,
    env: { ...inherited, LESS: inherited.LESS ?? 'FRX' },
    stdin: new Blob([text]),
    stdout: 'inherit',
    stderr: 'inherit',
  })
  // The pager takes Ctrl-C; berth ends with it.
  const ignore = () => {}
  process.on('SIGINT', ignore)
  const exitCode = await child.exited
  process.off('SIGINT', ignore)
  // 127: sh found no such program.
  if (exitCode === 127) await stdout.write(Buffer.from(text))
}
