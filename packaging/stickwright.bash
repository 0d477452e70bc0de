# bash completion for stickwright and stickwrightd: verbs, options and their values, as the programs themselves list them.
_stickwright() {
  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} program=${COMP_WORDS[0]} help words
  if [ "${program##*/}" = stickwrightd ]; then
    help=$("$program" --help 2>/dev/null)
  elif [ "$COMP_CWORD" = 1 ]; then
    words=$("$program" help 2>/dev/null | sed -n 's/^  \([a-z]*\) .*/\1/p')
    COMPREPLY=($(compgen -W "$words help" -- "$cur"))
    return
  elif [ "${COMP_WORDS[1]}" = help ]; then
    COMPREPLY=($(compgen -W "$("$program" help 2>/dev/null | sed -n 's/^  \([a-z]*\) .*/\1/p')" -- "$cur"))
    return
  else
    help=$("$program" help "${COMP_WORDS[1]}" 2>/dev/null)
  fi
  if [[ $prev == --* ]]; then
    words=$(sed -n "s/^  $prev \([a-z|-]*|[a-z|-]*\) .*/\1/p" <<<"$help" | tr '|' ' ')
    if [ -n "$words" ]; then
      COMPREPLY=($(compgen -W "$words" -- "$cur"))
      return
    fi
  fi
  case $cur in
  -*) COMPREPLY=($(compgen -W "$(grep -oE '^  (-[a-z], )?--[a-z-]+' <<<"$help" | grep -oE -- '--[a-z-]+')" -- "$cur")) ;;
  *) COMPREPLY=($(compgen -f -- "$cur")) ;;
  esac
}
complete -o filenames -F _stickwright stickwright stickwrightd
