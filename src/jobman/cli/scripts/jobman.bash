# bash completion for jobman: source it, or save it as ~/.local/share/bash-completion/completions/jobman.

# Set REPLY to a word as it is without its quotes, and quote to the one that is still open. Expands nothing.
__jobman_unquote() {
    local word=$1 char index
    REPLY= quote=
    if [[ $word != *[\'\"\\]* ]]; then
        REPLY=$word
        return
    fi
    for ((index = 0; index < ${#word}; index++)); do
        char=${word:index:1}
        if [[ -z $quote && $char == [\'\"] ]]; then
            quote=$char
        elif [[ $char == "$quote" ]]; then
            quote=
        elif [[ $char == \\ && $quote != \' ]]; then
            index=$((index + 1))
            REPLY+=${word:index:1}
        else
            REPLY+=$char
        fi
    done
}

# Complete the command line that begins at word $1 of COMP_WORDS, of which $2 is the last.
__jobman_command_line() {
    if declare -F _comp_command_offset >/dev/null; then
        _comp_command_offset "$1"
    elif declare -F _command_offset >/dev/null; then
        _command_offset "$1"
    else
        ((COMP_CWORD > $1)) || mapfile -t COMPREPLY < <(compgen -c -- "$2")
        compopt -o bashdefault -o default
    fi
}

__jobman() {
    # bash also splits at the = and : of COMP_WORDBREAKS: a word without a blank before it belongs to the one before.
    local line=${COMP_LINE:0:COMP_POINT} words=() places=() index rest word REPLY quote
    for ((index = 0; index <= COMP_CWORD; index++)); do
        rest=${line#"${line%%[![:space:]]*}"}
        word=${COMP_WORDS[index]}
        ((index < COMP_CWORD)) || word=$rest
        if ((index)) && [[ $rest == "$line" ]]; then
            words[-1]+=$word
        else
            words+=("$word")
            places+=("$index")
        fi
        line=${rest#"$word"}
    done
    COMPREPLY=()
    if ((${#words[@]} > 1)) && [[ ${words[-2]} == *[\<\>] ]]; then
        compopt -o default
        return
    fi
    for index in "${!words[@]}"; do
        __jobman_unquote "${words[index]}"
        words[index]=$REPLY
    done
    local lines directive open=$quote current=${words[-1]}
    mapfile -t lines < <("${1/#\~\//$HOME/}" __complete "${words[@]:1}" 2>/dev/null)
    ((${#lines[@]})) || return
    directive=${lines[-1]#:}
    unset 'lines[-1]'
    case ${directive%% *} in
        0) compopt -o default ;;
        6) compopt -o nospace ;;
        16) compopt -o dirnames ;;
        64)
            __jobman_command_line "${places[${directive#* } + 1]}" "$2"
            return
            ;;
    esac
    # Readline replaces only what follows the last place at which it splits.
    __jobman_unquote "$2"
    local kept=${current%"$REPLY"}
    for word in "${lines[@]}"; do
        word=${word%%$'\t'*}
        word=${word#"$kept"}
        [[ -n $open || $word != *[!A-Za-z0-9_.,:=/@%+-]* ]] || printf -v word %q "$word"
        COMPREPLY+=("$word")
    done
}

complete -o nosort -F __jobman jobman 2>/dev/null || complete -F __jobman jobman
