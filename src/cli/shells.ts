import type { Shell } from './complete.ts'

/**
 * The scripts that hand a shell's completion to `berth __complete SHELL -- WORD…`. That prints what kind
 * of thing can stand at the cursor (`words`, `files`, `folders`) and then one candidate a line, its
 * description behind a tab. The words go as arguments and never through `eval`: what a person is
 * typing for `berth exec` must not run when TAB is pressed.
 */
export const SHELL_SCRIPTS: Record<Shell, string> = {
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
    folders)
      compopt -o filenames 2>/dev/null
      while IFS= read -r line; do COMPREPLY+=("$line"); done < <(compgen -d -- "$current")
      ;;
    *) compopt +o default 2>/dev/null ;;
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
    folders) compset -P '*='; _files -/ ;;
    *)
      lines=("\${(@)lines//:/\\\\:}")
      lines=("\${(@)lines/$'\\t'/:}")
      lines=("\${(@)lines%:}")
      _describe berth lines
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
    case folders
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
