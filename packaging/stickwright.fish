# fish completion for stickwright and stickwrightd: verbs, options and their values, as the programs themselves list them.
function __stickwright_help
    set -l line (commandline -opc)
    if string match -qr 'stickwrightd$' -- $line[1]
        $line[1] --help 2>/dev/null
    else if test (count $line) -gt 1
        $line[1] help $line[2] 2>/dev/null
    else
        $line[1] help 2>/dev/null
    end
end

# Verbs with what they do, a tab between.
function __stickwright_verbs
    set -l line (commandline -opc)
    $line[1] help 2>/dev/null | string replace -rf '^  ([a-z]+) +(.*)' '$1\t$2'
end

function __stickwright_options
    __stickwright_help | string replace -rf '^  (?:-[a-z], )?(--[a-z-]+).*? {2,}(.*)' '$1\t$2'
end

# Values of the option before the cursor, where its help lists them.
function __stickwright_values
    set -l line (commandline -opc)
    __stickwright_help | string replace -rf -- "^  $line[-1] ([a-z-]+(?:\\|[a-z-]+)+) .*" '$1' | string split '|'
end

function __stickwright_wants_verb
    set -l line (commandline -opc)
    test (count $line) -eq 1; or begin
        test (count $line) -eq 2; and test $line[2] = help
    end
end

complete -c stickwright -n __stickwright_wants_verb -f -a '(__stickwright_verbs)'
for program in stickwright stickwrightd
    complete -c $program -n 'test (count (__stickwright_values)) -gt 1' -f -a '(__stickwright_values)'
    complete -c $program -n 'string match -q -- "-*" (commandline -ct)' -a '(__stickwright_options)'
end
