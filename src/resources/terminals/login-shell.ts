/** Longest name of a server in a prompt. @bound reader */
const MAX_NAME = 24

/** Prompts that no person has chosen, as patterns of a shell: those of bash itself and of usual systems. */
const USUAL_PROMPTS = [
  String.raw`'\s-\v\$ '`,
  String.raw`'\h:\w\$ '`,
  String.raw`'\u@\h:\w\$ '`,
  String.raw`'$''{debian_chroot:'*'\u@\h:\w\$ '`,
  String.raw`'[\u@\h \W]\$ '`,
]

/**
 * The command of a terminal without one: the first shell there is, as a login shell. A system's profile sets PATH
 * anew, without berth's own tools, so the shell's first prompt adds them again.
 */
export const LOGIN_SHELL = [
  'for shell in "$BERTH_SHELL" bash sh; do',
  '  path=$(command -v "$shell" 2>/dev/null) && [ -x "$path" ] && break',
  'done',
  'unset BERTH_SHELL',
  'SHELL=$path; export SHELL',
  'exec "$path" -l',
].join('\n')

/** Options of the environment of a login shell. */
interface LoginShellOptions {
  /** Name of the server for the prompt. */
  name: string
  /** Absolute path of berth's own tools as the shell sees it. */
  tools: string
  /** The shell to prefer; empty for none. */
  shell: string
}

/**
 * Returns the variables of a login shell. bash evaluates PROMPT_COMMAND before its first prompt, after all files of
 * the system and the person: a prompt that they have set stays. Nothing is written, so no file is left in the
 * workspace; the history ends with the shell.
 */
export function loginShellEnvironment({ name, tools, shell }: LoginShellOptions): Record<string, string> {
  const shown = promptName(name)
  const colored = (color: number, text: string): string => String.raw`\[\e[${color}m\]${text}\[\e[m\]`
  const prompt = String.raw`${colored(32, shown)}:${colored(34, String.raw`\w`)}\$ `
  const usual = USUAL_PROMPTS.join('|')
  return {
    BERTH_SHELL: shell,
    HISTFILE: '',
    LESSHISTFILE: '-',
    PS1: `${shown}$ `,
    PROMPT_COMMAND: [
      'unset PROMPT_COMMAND',
      `case $PS1 in ${usual}|${quoted(`${shown}$ `)}) PS1=${quoted(prompt)};; esac`,
      `case :$PATH: in *:${tools}/bin:*) ;; *) PATH=$PATH:${tools}/bin;; esac`,
    ].join('; '),
  }
}

/** Returns a server's name for a prompt, without characters that a shell would act on. */
const promptName = (name: string): string =>
  name
    .replace(/[^\p{L}\p{N}._ -]+/gu, ' ')
    .trim()
    .replace(/ +/g, '-')
    .slice(0, MAX_NAME) || 'berth'

const quoted = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`
