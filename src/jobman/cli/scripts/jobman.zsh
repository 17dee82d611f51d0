#compdef jobman
# zsh completion for jobman: save it as _jobman in a directory of $fpath, or source it after compinit.

_jobman() {
    local program=${(Q)words[1]} directive line
    local -a before lines found shown options
    before=("${(@Q)words[2,CURRENT-1]}")
    ((CURRENT > 2)) || before=()
    program=${program/#\~\//$HOME/}
    lines=("${(@f)$($program __complete "${before[@]}" "${(Q)PREFIX}" 2>/dev/null)}")
    directive=${lines[-1]#:}
    lines[-1]=()
    case ${directive%% *} in
        0)
            [[ $PREFIX != --*=* ]] || compset -P '*='
            _files
            return
            ;;
        16)
            [[ $PREFIX != --*=* ]] || compset -P '*='
            _files -/
            return
            ;;
        64)
            line=$((${directive#* } + 1))
            shift $line words
            ((CURRENT -= line))
            _normal
            return
            ;;
        6) options=(-S '') ;;
    esac
    for line in $lines; do
        found+=("${line%%$'\t'*}")
        shown+=("${line/$'\t'/  -- }")
    done
    [[ $lines != *$'\t'* ]] || options+=(-l)
    compadd -V jobman -d shown "${options[@]}" -a -- found
}

if [[ $funcstack[1] == _jobman ]]; then
    _jobman "$@"
else
    compdef _jobman jobman
fi
