# bash completion for stickwright: verbs, options and their values, as the program itself lists them.
_stickwright() {
  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} program=${COMP_WORDS[0]} words
  if [ "$COMP_CWORD" = 1 ]; then
    words=$("$program" help 2>/dev/null | sed -n 's/^  \([a-z]*\) .*/\1/p')
    COMPREPLY=($(compgen -W "$words help" -- "$cur"))
    return
  fi
  case $prev in
  --*)
    words=$("$program" help compile 2>/dev/null | sed -n "s/^  $prev \([a-z|-]*|[a-z|-]*\) .*/\1/p" | tr '|' ' ')
    if [ -n "$words" ]; then
      COMPREPLY=($(compgen -W "$words" -- "$cur"))
      return
    fi
    ;;
  esac
  case $cur in
  -*)
    words=$("$program" help "${COMP_WORDS[1]}" 2>/dev/null | grep -oE '(^|[ [|])--[a-z-]+' | tr -d ' [|')
    COMPREPLY=($(compgen -W "$words" -- "$cur"))
    ;;
  *) COMPREPLY=($(compgen -f -- "$cur")) ;;
  esac
}
complete -o filenames -F _stickwright stickwright
