/** Matches a block of a page with a session: its name, and its text. */
const BLOCK = /^```console (.+)\n([\s\S]*?)^```$/gm

/** Returns the sessions of a page by name. */
export const sessionsOf = (page: string): Map<string, string> =>
  new Map([...page.matchAll(BLOCK)].map(([, name = '', text = '']) => [name, text.trimEnd()]))

/** Returns a page with another text for some of its sessions. */
export const withSessions = (page: string, texts: ReadonlyMap<string, string>): string =>
  page.replaceAll(BLOCK, (block, name: string) => {
    const text = texts.get(name)
    return text === undefined ? block : `\`\`\`console ${name}\n${text}\n\`\`\``
  })

/** What differs between two runs that print the same. */
const VARYING: readonly (readonly [RegExp, string])[] = [
  [/\b([a-z]+_)[0-9a-z]{26}\b/g, '$1ID'],
  [/(127\.0\.0\.1:|\.localhost:|\bport )\d+/g, '$1PORT'],
  [/(?:\d{4}-\d\d-\d\dT)?\d\d:\d\d:\d\d(?:\.\d+Z)?/g, 'CLOCK'],
  [/\b\d+(?:\.\d+)? m?s\b/g, 'TIME'],
  [/\b\d+(?= bytes to send)/g, 'COUNT'],
  [/\bcreated (?:now|\d+[dhms] ago)/g, 'created AGO'],
]

/**
 * Matches lines that not every run has: the time of a phase is printed only if it is long, and the version before may end
 * after the command.
 */
const OCCASIONAL = /^(?:\w+ +\| )?✓ |^berth +The version before was ended\./

/** Matches what a second "up" shows of apps only if they have not come up again by themselves before it looks. */
const WAKING = /^\w+ +\| /

/**
 * Returns the text of a session without what differs from run to run. Lines of one command are sorted: several programs
 * print at once.
 */
export function comparable(text: string): string {
  const known = VARYING.reduce((shown, [pattern, word]) => shown.replace(pattern, word), text)
  const commands = known.split(/^(?=\$ )/m)
  return commands
    .map((lines) =>
      lines
        .split('\n')
        .filter((line) => !OCCASIONAL.test(line))
        .filter((line) => !(lines.startsWith('$ berth up --detach\n') && WAKING.test(line)))
        .map((line) => line.replace(/ {2,}/g, '  ').trimEnd())
        .sort()
        .join('\n'),
    )
    .join('\n')
}
