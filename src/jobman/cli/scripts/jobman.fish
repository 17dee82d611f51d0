# fish completion for jobman: save it as ~/.config/fish/completions/jobman.fish, or source it.

function __jobman_complete
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    set -l program (string replace -r '^~/' "$HOME/" -- $words[1])
    set -e words[1]
    set -l plain (string unescape -- $current; or echo $current)
    set -l lines ($program __complete $words "$plain" 2>/dev/null)
    set -l directive (string split ' ' -- $lines[-1])
    set -e lines[-1]
    # A file may be the value of --flag=, which is part of the word.
    set -l flag (string match -r -- '^--[^=]*=' "$plain")
    set -l value (string replace -- "$flag" '' "$plain")
    switch "$directive[1]"
        case :0
            for path in (__fish_complete_path "$value")
                echo "$flag$path"
            end
        case :16
            for path in (__fish_complete_directories "$value" '')
                echo "$flag$path"
            end
        case :64
            set -l place (math $directive[2] + 1)
            set -l typed (string escape -- $words[$place..-1]) $current
            complete -C "$typed"
        case '*'
            printf '%s\n' $lines
    end
end

complete -c jobman -e
complete -c jobman -k -f -a '(__jobman_complete)'
