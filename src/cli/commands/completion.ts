import { basename } from 'node:path'
import type { Command } from 'commander'
import { UsageError } from '../../errors.ts'
import { EVENT_NAMES } from '../../resources/events/names.ts'
import { action } from '../command.ts'
import { COMPLETE } from '../command-line.ts'
import { type CompletionWord, complete, type Placeholders, SHELLS, type Shell } from '../complete.ts'
import type { Named, NameSource } from '../names.ts'
import { NAME_SOURCES } from '../nouns/index.ts'
import { printable } from '../output.ts'
import { type CliSession, connect } from '../session.ts'

/**
 * Time limit of a query while a person waits at the TAB key, in milliseconds. A busy instance on this machine
 * responds within it.
 */
const LIST_TIMEOUT_MS = 1_000

/** `berth completion` */
export const completion = action({
  usage: 'completion [SHELL]',
  arguments: { SHELL: { description: 'for which shell (default: the one of $SHELL)', choices: SHELLS } },
  summary: 'print a completion script for the shell',
  description: 'Prints a script that completes commands, options, values and ids.',
  access: 'none',
  json: null,
  help: `
Load it for good:
  bash   echo 'source <(berth completion bash)' >> ~/.bashrc
  zsh    echo 'source <(berth completion zsh)' >> ~/.zshrc     (behind compinit)
  fish   berth completion fish > ~/.config/fish/completions/berth.fish
`,
  async run({ session: { context }, args: [given] }) {
    const own = basename(context.env.SHELL ?? '')
    const shell = SHELLS.find((one) => one === (given ?? own))
    if (shell === undefined) throw new UsageError(`Say for which shell: ${SHELLS.join(', ')}.`)
    await context.stdout.write(SHELL_SCRIPTS[shell])
  },
})

/** The placeholders whose values can be listed, and whether each accepts several, separated by commas. */
const PLACEHOLDERS: Placeholders = new Map([
  ...[...NAME_SOURCES].map(([name, { isCommaSeparated }]) => [name, isCommaSeparated === true] as const),
  ['EVENTS', true],
  ['INSTANCE', false],
])

/** Adds the hidden command that the completion scripts call. */
export function registerCompletion(program: Command, session: CliSession): void {
  const { stdout } = session.context
  program
    .command(`${COMPLETE} <SHELL> [WORD...]`, { hidden: true })
    .allowUnknownOption()
    .helpOption(false)
    .action(async (shell: Shell, given: string[]) => {
      const words = shell === 'bash' ? joinSplitWords(given) : given
      const found = complete(program, words, PLACEHOLDERS)
      if (found.kind === 'files' || found.kind === 'directories') return stdout.write(`${found.kind}\n`)
      const typed = words.at(-1) ?? ''
      const places = found.kind === 'place' ? await placesFor(session, typed) : []
      if (found.kind === 'place' && places.length === 0) return stdout.write('files\n')
      const candidates =
        found.kind === 'words' || found.kind === 'place'
          ? [...(found.kind === 'words' ? found.candidates : places)]
          : (await candidatesFor(session, found.placeholder, typed.slice(found.prefix.length)))
              // An id that is already in the list is not offered again.
              .filter(({ value }) => !found.prefix.includes(value))
              .map(({ value, description }) => ({ value: found.prefix + value, description }))
              .filter(({ value }) => value.startsWith(typed))
      const before = shell === 'bash' ? keptPrefixLength(given, words) : 0
      const shown = candidates.map(({ value, description }) => ({ value: value.slice(before), description }))
      const lines = shown.map(({ value, description }) => `${value}\t${description}\n`)
      await stdout.write(`words\n${lines.join('')}`)
    })
}

/** Joins words that bash has split at "=" and ":", such as `--tier = small`. */
function joinSplitWords(words: readonly string[]): string[] {
  const joined: string[] = []
  let open = false
  for (const word of words) {
    const sign = word === '=' || word === ':'
    if (joined.length > 0 && (sign || open)) joined.push(`${joined.pop()}${word}`)
    else joined.push(word)
    open = sign
  }
  return joined
}

/**
 * Returns the length of the part of the current word that bash keeps: it replaces only the part after the last "=" or
 * ":".
 */
function keptPrefixLength(given: readonly string[], words: readonly string[]): number {
  const last = given.at(-1) ?? ''
  return (words.at(-1) ?? '').length - (last === '=' || last === ':' ? 0 : last.length)
}

/** Lists the values of a placeholder. Returns none if no instance responds, because a TAB must not print errors. */
async function candidatesFor(
  session: CliSession,
  placeholder: string,
  typed: string,
): Promise<CompletionWord[]> {
  if (placeholder === 'EVENTS') return EVENT_NAMES.map((value) => ({ value, description: '' }))
  try {
    if (placeholder === 'INSTANCE') return await loginCandidates(session)
    const source = session.names.get(placeholder)
    if (!source) return []
    const client = await connect(session, {}, source.access)
    const found = await source.list(client, AbortSignal.timeout(LIST_TIMEOUT_MS))
    return found.map((named) => ({
      value: shortestName(found, named, source, typed),
      description: printable(named.description.replace(/\s+/g, ' ')),
    }))
  } catch {
    // A shell that completes a word has no place for an error; the command itself reports it.
    return []
  }
}

/** Returns the servers and projects whose name begins with what is typed, each with a colon. */
async function placesFor(session: CliSession, typed: string): Promise<CompletionWord[]> {
  if (!/^\w/.test(typed) || /[/:]/.test(typed)) return []
  const found = await Promise.all(
    ['SERVER', 'PROJECT'].map((placeholder) => candidatesFor(session, placeholder, typed)),
  )
  return found
    .flat()
    .map(({ value, description }) => ({ value: `${value}:`, description }))
    .filter(({ value }) => value.startsWith(typed))
}

/** Matches a name that no shell has to quote, and no command takes for an option. */
const PLAIN = /^\w[\w.@+-]*$/

/**
 * Returns what a person would type: the first other name that is plain and nobody else's, or the id if the typed text
 * begins like one.
 */
function shortestName(
  all: readonly Named[],
  { id, names = [] }: Named,
  { isCommaSeparated }: NameSource,
  typed: string,
): string {
  const prefix = id.slice(0, id.indexOf('_') + 1)
  if (isCommaSeparated || (typed !== '' && (prefix.startsWith(typed) || typed.startsWith(prefix)))) return id
  const isOwn = (name: string): boolean => all.filter((one) => one.names?.includes(name)).length === 1
  return names.find((name) => PLAIN.test(name) && isOwn(name)) ?? id
}

/** Lists the instances that this user is signed in to, running or not. */
const loginCandidates = async ({ context }: CliSession): Promise<CompletionWord[]> =>
  (await import('../login/whoami.ts'))
    .listLogins(context)
    .map(({ base_url, label }) => ({ value: base_url, description: label }))

/**
 * Scripts that pass a shell's completion to `berth __complete SHELL -- WORD…`. It prints the kind of completion
 * (`words`, `files`, `directories`) and then one candidate per line, with its description after a tab. The words are
 * passed as arguments and never through `eval`: a command typed for `berth exec` must not run when TAB is pressed.
 */
const SHELL_SCRIPTS: Record<Shell, string> = {
  bash: `# berth completion for bash. Load it with:  source <(berth completion bash)
_berth() {
  local current=\${COMP_WORDS[COMP_CWORD]} program=\${1/#\\~/$HOME} kind='' line
  type -P "$program" >/dev/null || program=berth
  COMPREPLY=()
  while IFS= read -r line; do
    if [[ -z $kind ]]; then kind=$line; else COMPREPLY+=("\${line%%$'\\t'*}"); fi
  done < <("$program" __complete bash -- "\${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
  [[ $current == '=' ]] && current=''
  case $kind in
    files) ;;
    directories)
      compopt -o filenames 2>/dev/null
      while IFS= read -r line; do COMPREPLY+=("$line"); done < <(compgen -d -- "$current")
      ;;
    *)
      compopt +o default 2>/dev/null
      [[ \${#COMPREPLY[@]} == 1 && \${COMPREPLY[0]} == *: ]] && compopt -o nospace 2>/dev/null
      ;;
  esac
}
complete -o default -F _berth berth
`,
  zsh: `#compdef berth
# berth completion for zsh. Load it with:  source <(berth completion zsh)
_berth() {
  local -a lines
  lines=("\${(@f)$("\${(Q)words[1]}" __complete zsh -- "\${(@Q)words[2,CURRENT]}" 2>/dev/null)}")
  local kind=$lines[1]
  shift lines
  case $kind in
    files) compset -P '*='; _files ;;
    directories) compset -P '*='; _files -/ ;;
    *)
      local -a places
      places=("\${(@M)lines:#*:$'\\t'*}")
      lines=("\${(@)lines:#*:$'\\t'*}")
      places=("\${(@)places//:/\\\\:}")
      places=("\${(@)places/$'\\t'/:}")
      lines=("\${(@)lines//:/\\\\:}")
      lines=("\${(@)lines/$'\\t'/:}")
      lines=("\${(@)lines%:}")
      _describe berth lines -- places -S ''
      ;;
  esac
}
if [[ $funcstack[1] == _berth ]]; then _berth "$@"; else compdef _berth berth; fi
`,
  fish: `# berth completion for fish. Load it with:  berth completion fish | source
function __berth_complete
  set -l words (commandline -opc) (commandline -ct)
  set -l lines ($words[1] __complete fish -- $words[2..-1] 2>/dev/null)
  set -l option (string match -r '^--[^=]*=' -- (commandline -ct))
  switch "$lines[1]"
    case files
      for path in (__fish_complete_path (string replace -- "$option" '' (commandline -ct)))
        echo "$option$path"
      end
    case directories
      for path in (__fish_complete_directories (string replace -- "$option" '' (commandline -ct)))
        echo "$option$path"
      end
    case '*'
      printf '%s\\n' $lines[2..-1]
  end
end
complete -c berth -f -a '(__berth_complete)'
`,
}
